// Package host is where the commands of ttmon get their snapshots from: a
// ttmond that runs here, the host itself, or a recording that stands for it. It
// also asks ttmond for what snapshots do not hold: buffers, blocks, the past.
package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/collect/assess/setting"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/tui/act"
)

const (
	// socketVar is the variable that names the socket of a ttmond.
	socketVar = "TTMON_SOCKET"
	// serverVar is the variable that names the socket of a ttmon-server.
	serverVar = "TTMON_SERVER_SOCKET"
	// timeoutVar is the variable that says how long devices, processes and a
	// ttmond may take to answer, for machines on which everything is slow.
	timeoutVar = "TTMON_TIMEOUT"
)

const (
	daemonTimeout = 300 * time.Millisecond // direct reading still fits into a second then
	namedTimeout  = 900 * time.Millisecond // a ttmond that the user named: no other is asked
	daemonRetry   = 5 * time.Second
	daemonStale   = 10 * time.Second // a snapshot this old is of a daemon in trouble
	// firstTimeout is how long a first look waits for a snapshot of now while the daemon
	// answers that it has only an older one: the machine is busy, or a chip hangs.
	firstTimeout = 2 * time.Second
)

// Source makes snapshots, one after the other.
type Source interface {
	Next(context.Context) (*model.Snapshot, error)
}

// Options say which host is shown, and through whom.
type Options struct {
	Root    string // of a host that is mounted here; empty: this one
	Daemon  string // socket of the ttmond to ask; empty: one that runs here, if any
	Direct  bool   // ask none
	Getenv  func(string) string
	Instead Source      // of the host: a recording; nil: none
	Warn    func(error) // what does not keep ttmon from answering; nil: no warnings
}

// Files is the root of the host to read.
func (o Options) Files() (hostfs.Root, error) {
	if o.Root == "" {
		return hostfs.Root{}, nil
	}
	if err := hostfs.CheckDir(o.Root); err != nil {
		return hostfs.Root{}, exit.Usage("--root: %w", err)
	}
	return hostfs.At(o.Root), nil
}

// Host is where snapshots of this host come from: a ttmond, which sees every
// user's memory and has history for rates, or our own reading where there is
// none. It follows a daemon that stops and starts.
type Host struct {
	Root    hostfs.Root
	Sockets []string      // of ttmond's that may be there; none: read directly
	Servers []string      // of ttmon-server's; none: it is not asked
	Named   bool          // the user named the daemon: no other source is used
	Timeout time.Duration // that the user set; 0: the usual

	simulated bool // ours is; a daemon of the real host is not asked then
	instead   Source
	client    *client.Client
	retry     time.Time // not before, after a failure
	asked     time.Time // when the daemon was, last
	alerts    alertSource
	direct    *collect.Collector
	limits    func() (assess.Thresholds, error) // read once, where they are needed
}

// Open chooses where snapshots come from. It sends no request yet.
func Open(o Options) (*Host, error) {
	if o.Instead != nil {
		return &Host{instead: o.Instead}, nil
	}
	root, err := o.Files()
	if err != nil {
		return nil, err
	}
	h := &Host{Root: root, simulated: root.Exists(collect.Marker), limits: sync.OnceValues(func() (assess.Thresholds, error) {
		return setting.Read(setting.Files(o.Root, os.Geteuid(), o.Getenv)...)
	})}
	if text := o.Getenv(timeoutVar); text != "" {
		if h.Timeout, err = time.ParseDuration(text); err != nil || h.Timeout < time.Millisecond || h.Timeout > time.Hour {
			return nil, exit.Usage("$%s: %q is not a duration between 1ms and 1h, such as 5s", timeoutVar, text)
		}
	}
	named := o.Daemon
	if named == "" && !o.Direct {
		named = o.Getenv(socketVar)
	}
	switch {
	case o.Daemon != "" && o.Direct:
		return nil, exit.Usage("--daemon and --direct cannot be used together")
	case named != "":
		h.Sockets, h.Named = []string{named}, true
		h.Servers = client.ServerPaths(named, o.Getenv)
	case !o.Direct && o.Root == "":
		h.Sockets = client.SocketPaths(o.Getenv)
		h.Servers = client.ServerPaths("", o.Getenv)
	}
	if path := o.Getenv(serverVar); path != "" && len(h.Servers) > 0 {
		h.Servers = []string{path}
	}
	o.warn(h)
	return h, nil
}

// warn reports thresholds that cannot be read, where they will be used. Later,
// when a ttmond stops, a screen may have the terminal.
func (o Options) warn(h *Host) {
	if o.Warn == nil || h.Socket() != "" {
		return
	}
	if _, err := h.limits(); err != nil {
		o.Warn(fmt.Errorf("%w; using the default thresholds", err))
	}
}

// Thresholds are those of conditions for snapshots that no ttmond has judged.
func (h *Host) Thresholds() assess.Thresholds {
	if h.limits == nil {
		return assess.Default()
	}
	t, _ := h.limits()
	return t
}

// Next makes or fetches a snapshot.
func (h *Host) Next(ctx context.Context) (*model.Snapshot, error) {
	if h.instead != nil {
		return h.instead.Next(ctx)
	}
	s, err := h.ReadSnapshot(ctx)
	if s != nil || h.Named {
		return s, err
	}
	if h.direct == nil {
		h.direct = collect.New(h.Root, collect.Options{
			Timeout: h.Timeout, Thresholds: h.Thresholds(), Ledgers: track.Options{Remove: h.Root == (hostfs.Root{})},
		})
	}
	return h.direct.Collect(ctx), nil
}

// ReadSnapshot reads a snapshot from the daemon; without one it returns nil. The first
// is one of now; the next ones are as new as befits how often it is called.
func (h *Host) ReadSnapshot(ctx context.Context) (*model.Snapshot, error) {
	now := time.Now()
	if len(h.Sockets) == 0 || now.Before(h.retry) && !h.Named {
		return nil, nil
	}
	if h.client == nil {
		path := h.Socket()
		if path == "" {
			h.retry = now.Add(daemonRetry)
			return nil, nil
		}
		h.client = client.New(path)
	}
	every := time.Duration(0)
	if !h.asked.IsZero() {
		every = now.Sub(h.asked)
	}
	h.asked = now
	s, late, err := h.request(ctx, every)
	for late && every == 0 && err == nil && time.Since(now) < max(firstTimeout, h.Timeout) {
		s, late, err = h.request(ctx, every)
	}
	ctx, cancel := context.WithTimeout(ctx, h.DaemonTimeout())
	defer cancel()
	switch {
	case err != nil:
	case s.Simulated != h.simulated:
		err = fmt.Errorf("the ttmond at %s watches another host: one of the two is simulated", h.client.Path())
	case now.Sub(s.Time) > daemonStale && !h.Named:
		err = fmt.Errorf("the ttmond at %s has made no snapshot for %s", h.client.Path(), now.Sub(s.Time).Round(time.Second))
	case late && every == 0 && !h.Named:
		err = fmt.Errorf("the ttmond at %s has made no snapshot since it was asked, %s ago", h.client.Path(), time.Since(now).Round(time.Second))
	default:
		if s.Alerts == nil {
			s.Alerts = h.alerts.ask(ctx, h.Server(), h.client.Path())
		}
		return s, nil
	}
	h.client.Close()
	h.client, h.retry = nil, now.Add(daemonRetry)
	if h.Named {
		return nil, exit.With(exit.Internal, "%w", err)
	}
	return nil, err
}

// request asks the daemon once. Each answer is a sign that it is alive, so each has a
// timeout of its own.
func (h *Host) request(ctx context.Context, every time.Duration) (s *model.Snapshot, late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.DaemonTimeout())
	defer cancel()
	return h.client.SnapshotEvery(ctx, every)
}

// DaemonTimeout is how long a daemon may take to answer.
func (h *Host) DaemonTimeout() time.Duration {
	switch {
	case h.Timeout > 0:
		return h.Timeout
	case h.Named:
		return namedTimeout
	}
	return daemonTimeout
}

// Stale asks the daemon what dead processes left behind. Without a daemon it returns
// nil; a daemon of another host is an error.
func (h *Host) Stale(ctx context.Context) (*wire.Stale, error) {
	path := h.Socket()
	if path == "" {
		return nil, nil
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, h.DaemonTimeout())
	defer cancel()
	answer, err := c.Stale(ctx)
	if err == nil && answer.Simulated != h.simulated {
		return nil, fmt.Errorf("the ttmond at %s watches another host: one of the two is simulated", path)
	}
	return answer, err
}

// Socket returns the first path at which a ttmond listens; "": there is none. A path that
// the user named is returned unchecked: no other is used.
func (h *Host) Socket() string {
	if h.Named && len(h.Sockets) > 0 {
		return h.Sockets[0]
	}
	return listening(h.Sockets)
}

// listening returns the first of some paths that has a socket. Where several have one,
// that of a daemon that was killed is left out.
func listening(paths []string) string {
	var sockets []string
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && st.Mode().Type() == os.ModeSocket {
			sockets = append(sockets, path)
		}
	}
	for i, path := range sockets {
		if i == len(sockets)-1 || accepts(path) {
			return path
		}
	}
	return ""
}

// accepts reports whether a daemon can be connected to at a socket, or is merely busy.
func accepts(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return err == nil || errors.Is(err, syscall.EAGAIN)
}

// Server is the socket of the ttmon-server. Where there is none, it is ttmond's: one
// of an older release keeps the past itself, and a newer one says who does.
func (h *Host) Server() string {
	if path := listening(h.Servers); path != "" {
		return path
	}
	return h.Socket()
}

// Close closes the connections, and the files of direct reading.
func (h *Host) Close() {
	if h.client != nil {
		h.client.Close()
	}
	if h.direct != nil {
		h.direct.Close()
	}
	h.alerts.close()
}

// Buffers asks the daemon for the live buffers of a process. The screens call
// it from another goroutine than Next, so it has a connection of its own.
func (h *Host) Buffers(ctx context.Context, t act.Target) ([]act.Buffer, error) {
	path := h.Socket()
	if path == "" {
		return nil, act.ErrUnknown
	}
	c := client.New(path)
	defer c.Close()
	reported, err := c.Buffers(ctx, t.PID, t.StartTicks, 500)
	if errors.Is(err, client.ErrNotFound) {
		return nil, act.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	out := make([]act.Buffer, len(reported.Buffers))
	for i, b := range reported.Buffers {
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
