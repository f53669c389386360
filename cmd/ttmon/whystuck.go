package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/console"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/waiting"
)

// workSample is how far two samples are apart: processor time, PCIe traffic and
// heartbeat are only known from the second on.
const workSample = 1200 * time.Millisecond

// stuck shows whether a process that runs is stuck; done reports whether that is
// the answer. A failed allocation comes first, unless the process waits now.
func (w *whyCmd) stuck(args []string) (done bool, err error) {
	if len(args) == 0 || w.list || w.html != "" {
		return false, nil
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return false, nil
	}
	h, err := host.Open(w.where)
	if err != nil {
		return true, err
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := twoSamples(ctx, h)
	if err != nil {
		return true, err
	}
	i := slices.IndexFunc(s.Processes, func(p model.Process) bool { return p.PID == pid })
	if i < 0 {
		return false, nil
	}
	p := &s.Processes[i]
	if verdict := assess.Wait(s, p).Verdict; verdict != assess.WaitStuck && (w.recorded != nil || failed(ctx, h, pid)) {
		return false, nil
	}
	if w.json {
		return true, w.Output("").Write(waiting.AppendJSON(nil, s, p))
	}
	o, err := w.TextOptions(w.Stdout)
	if err != nil {
		return true, err
	}
	width, _, _ := console.Size(w.Stdout)
	return true, w.PrintText(waiting.Append(nil, s, p, waiting.Options{Width: width, ASCII: o.ASCII, Color: o.Color}))
}

// twoSamples is a snapshot with figures that take two. A ttmond has taken the
// first one already.
func twoSamples(ctx context.Context, h *host.Host) (*model.Snapshot, error) {
	s, err := h.Next(ctx)
	if err != nil || h.Socket() != "" {
		return s, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(workSample):
	}
	return h.Next(ctx)
}

// failed reports whether ttmond keeps a failed allocation of a process.
func failed(ctx context.Context, h *host.Host, pid int) bool {
	path := h.Socket()
	if path == "" {
		return false
	}
	c := client.New(path)
	defer c.Close()
	_, _, err := c.Failure(ctx, "last", pid)
	return err == nil || !errors.Is(err, client.ErrNotFound)
}
