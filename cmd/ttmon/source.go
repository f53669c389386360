package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/wire"
)

const (
	// socketVar is the variable that names the socket of a ttmond.
	socketVar = "TTMON_SOCKET"
	// patienceVar is the variable that says how long devices, processes and a
	// ttmond may take to answer, for machines on which everything is slow.
	patienceVar = "TTMON_PATIENCE"
)

const (
	daemonPatience = 300 * time.Millisecond // direct reading still fits into a second then
	namedPatience  = 900 * time.Millisecond // a ttmond that the user named: nobody else is asked
	daemonRetry    = 5 * time.Second
	daemonStale    = 10 * time.Second // a snapshot this old is of a daemon in trouble
)

// host is where snapshots of this host come from: a ttmond, which sees every
// user's memory and has history for rates, or our own reading where there is
// none. It follows a daemon that goes and comes back.
type host struct {
	root      hostfs.Root
	paths     []string      // of sockets that may be there; none: read directly
	must      bool          // the user named the daemon: nothing else will do
	simulated bool          // ours is; a daemon of the real host is not asked then
	patience  time.Duration // that the user has; 0: the usual

	recorded *recorded // a recording that stands for the host; nil: none

	client *client.Client
	retry  time.Time // not before, after a failure
	direct *collect.Collector
}

// openHost finds out whom to ask. Nothing is asked yet.
func (a *app) openHost() (*host, error) {
	if a.recorded != nil {
		return &host{recorded: a.recorded}, nil
	}
	root, err := a.host()
	if err != nil {
		return nil, err
	}
	h := &host{root: root, simulated: root.Exists(collect.Marker)}
	if text := a.getenv(patienceVar); text != "" {
		if h.patience, err = time.ParseDuration(text); err != nil || h.patience < time.Millisecond || h.patience > time.Hour {
			return nil, usage("$%s: %q is not a time between 1ms and 1h, as in 5s", patienceVar, text)
		}
	}
	named := a.daemon
	if named == "" && !a.direct {
		named = a.getenv(socketVar)
	}
	switch {
	case a.daemon != "" && a.direct:
		return nil, usage("--daemon and --direct cannot be used together")
	case named != "":
		h.paths, h.must = []string{named}, true
	case !a.direct && a.rootDir == "":
		h.paths = client.SocketPaths(a.getenv("XDG_RUNTIME_DIR"))
	}
	return h, nil
}

// Next makes or fetches a snapshot.
func (h *host) Next(ctx context.Context) (*model.Snapshot, error) {
	if h.recorded != nil {
		return h.recorded.player.Next(ctx)
	}
	s, err := h.ask(ctx)
	if s != nil || h.must {
		return s, err
	}
	if h.direct == nil {
		h.direct = collect.New(h.root, collect.Options{Patience: h.patience, Ledgers: track.Options{Remove: h.root == (hostfs.Root{})}})
	}
	return h.direct.Collect(ctx), nil
}

// ask asks the daemon, if there is one. Without, it returns nothing.
func (h *host) ask(ctx context.Context) (*model.Snapshot, error) {
	now := time.Now()
	if len(h.paths) == 0 || now.Before(h.retry) && !h.must {
		return nil, nil
	}
	if h.client == nil {
		path := h.socket()
		if path == "" {
			h.retry = now.Add(daemonRetry)
			return nil, nil
		}
		h.client = client.New(path)
	}
	ctx, cancel := context.WithTimeout(ctx, h.daemonPatience())
	defer cancel()
	s, err := h.client.Snapshot(ctx)
	switch {
	case err != nil:
	case s.Simulated != h.simulated:
		err = fmt.Errorf("the ttmond at %s watches another host: one of the two is simulated", h.client.Path())
	case now.Sub(s.Time) > daemonStale && !h.must:
		err = fmt.Errorf("the ttmond at %s has made no snapshot for %s", h.client.Path(), now.Sub(s.Time).Round(time.Second))
	default:
		return s, nil
	}
	h.client.Close()
	h.client, h.retry = nil, now.Add(daemonRetry)
	if h.must {
		return nil, exitWith(exitInternal, "%w", err)
	}
	return nil, err
}

// daemonPatience is how long a daemon may take to answer.
func (h *host) daemonPatience() time.Duration {
	switch {
	case h.patience > 0:
		return h.patience
	case h.must:
		return namedPatience
	}
	return daemonPatience
}

// stale asks the daemon what dead processes left behind. Without one, or from
// one of another host, it returns nothing.
func (h *host) stale(ctx context.Context) (*wire.Stale, error) {
	path := h.socket()
	if path == "" {
		return nil, nil
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, h.daemonPatience())
	defer cancel()
	answer, err := c.Stale(ctx)
	if err == nil && answer.Simulated != h.simulated {
		return nil, fmt.Errorf("the ttmond at %s watches another host: one of the two is simulated", path)
	}
	return answer, err
}

// socket is the first that is there; one that was named is taken as it is.
func (h *host) socket() string {
	for _, path := range h.paths {
		if st, err := os.Stat(path); h.must || err == nil && st.Mode().Type() == os.ModeSocket {
			return path
		}
	}
	return ""
}

// Close gives back what is open.
func (h *host) Close() {
	if h.client != nil {
		h.client.Close()
	}
	if h.direct != nil {
		h.direct.Close()
	}
}

// buffers asks the daemon for the live buffers of a process. The screens call
// it from another goroutine than Next, so it has a connection of its own.
func (h *host) buffers(ctx context.Context, t act.Target) ([]act.Buffer, error) {
	path := h.socket()
	if path == "" {
		return nil, act.ErrUnknown
	}
	c := client.New(path)
	defer c.Close()
	list, err := c.Buffers(ctx, t.PID, t.StartTicks, 500)
	if errors.Is(err, client.ErrNotFound) {
		return nil, act.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	out := make([]act.Buffer, len(list))
	for i, b := range list {
		out[i] = act.Buffer{Device: model.NoDevice, Chip: b.Chip, Pool: b.Pool, Bytes: b.Size, Age: time.Since(b.Born), Note: b.Kind}
		if b.Index != nil {
			out[i].Device = *b.Index
		}
		if b.ID != nil { // otherwise it is another user's
			out[i].Note = fmt.Sprintf("%s at %#x", b.Kind, *b.ID)
		}
	}
	return out, nil
}

// blocks asks for the allocators of a process: the daemon, or the ledger that
// the process keeps itself. As with buffers, it has a connection of its own.
func (h *host) blocks(ctx context.Context, t act.Target) (*blocks.Process, error) {
	if path := h.socket(); path != "" {
		c := client.New(path)
		defer c.Close()
		if p, err := c.Blocks(ctx, t.PID); err == nil {
			return p, nil
		}
	}
	if h.must || h.root != (hostfs.Root{}) {
		return nil, act.ErrUnknown
	}
	r := track.NewReader(track.Options{})
	defer r.Close()
	for _, p := range r.Read([]model.ProcessID{{PID: t.PID, StartTicks: t.StartTicks}}).Processes {
		if p.PID == t.PID {
			return p.State, nil
		}
	}
	return nil, act.ErrUnknown
}
