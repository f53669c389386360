package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/waiting"
)

// workSample is the time between two samples: processor time, PCIe traffic and
// heartbeat need two.
const workSample = 1200 * time.Millisecond

// stuck prints whether a running process is stuck. done is false if ttmon why should
// explain a failed allocation instead: the argument is no running process, or it has
// a failed allocation and is not stuck.
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
	if assess.Wait(s, p).Verdict != assess.WaitStuck && (w.recorded != nil || mayHaveFailed(ctx, h, pid)) {
		return false, nil
	}
	if w.json {
		return true, w.Output("").Write(waiting.AppendJSON(nil, s, p))
	}
	o, err := w.TextOptions(w.Stdout)
	if err != nil {
		return true, err
	}
	return true, w.PrintText(waiting.Append(nil, s, p, o.Options))
}

// twoSamples returns a snapshot with the figures that need two. A ttmond has the first
// one already.
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

// mayHaveFailed reports whether ttmond has a failed allocation of a process, or cannot
// say: then the command that asks for it reports the error.
func mayHaveFailed(ctx context.Context, h *host.Host, pid int) bool {
	path := h.Socket()
	if path == "" {
		return false
	}
	c := client.New(path)
	defer c.Close()
	_, _, err := c.Failure(ctx, "last", pid)
	return !errors.Is(err, client.ErrNotFound)
}
