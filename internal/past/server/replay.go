package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/httpguard"
	"github.com/ttmon/ttmon/internal/past/page"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/web"
)

// Replay says how a recording is served.
type Replay struct {
	Listen string        // address of this machine; port 0 is any that is free
	From   time.Duration // so much after the beginning
	Speed  float64       // so many times as fast
	Paused bool
}

// replayed is a recording behind the page and the API: what is live there is
// the moment that is played, and what is past is the rest of the recording.
type replayed struct {
	Replay

	key    string
	empty  string // a folder with nothing in it
	player *recording.Player
	feed   api.Feed
	events *eventlog.Recent
	charts *recordedCharts

	failures recordedFailures

	mu   sync.Mutex // for past, which has a place of its own in the file
	past *recording.Reader
}

// ServeRecording serves a recording as if it happened now, until ctx is done. It
// prints the address to out.
func ServeRecording(ctx context.Context, path string, o Replay, out io.Writer) error {
	r := &replayed{Replay: o}
	return r.run(ctx, path, out)
}

func (r *replayed) run(ctx context.Context, path string, out io.Writer) error {
	c := Listen{Address: r.Listen}
	if err := c.check(); err != nil {
		return daemon.Usage(err)
	}
	played, err := recording.Open(path)
	if err != nil {
		return daemon.Usage(err)
	}
	defer played.Close()
	if r.past, err = recording.Open(path); err != nil {
		return daemon.Usage(err)
	}
	defer r.past.Close()
	r.player = recording.NewPlayer(played)
	first, _, ok := r.past.Span()
	if !ok {
		return daemon.Usage(fmt.Errorf("%s: nothing is recorded in it yet", path))
	}
	dir, err := os.MkdirTemp("", "ttmon-replay-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.empty = filepath.Join(dir, "empty")
	if err := os.Mkdir(r.empty, 0o700); err != nil {
		return err
	}
	if err := r.openEvents(); err != nil {
		return err
	}
	if err := r.openFailures(); err != nil {
		return err
	}
	r.player.Go(first.Add(r.From))
	r.player.SetSpeed(r.Speed)
	r.player.Play(!r.Paused)
	if err := r.publish(ctx); err != nil {
		return daemon.Usage(fmt.Errorf("%s: %w", path, err))
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.Listen)
	if err != nil {
		return fmt.Errorf("serving the recording: %w", err)
	}
	r.key = rand.Text()
	fmt.Fprintf(out, "http://%s/#ticket=%s\n", l.Addr(), r.key)
	if r.charts, err = newRecordedCharts(filepath.Join(dir, "charts")); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { r.play(ctx) })
	parts.Go(func() { r.charts.read(ctx, path) })
	defer func() {
		cancel()
		parts.Wait()
		r.charts.store.Close()
	}()
	return serveHTTP(ctx, httpguard.NewListener(l, maxHTTPConns), r.routes(), c, slog.New(slog.DiscardHandler))
}

// openEvents makes the log of a recording's events, for as long as it is served.
func (r *replayed) openEvents() error {
	marks, err := r.past.Events()
	if err != nil {
		return err
	}
	list := make([]model.Event, len(marks))
	for i := range marks {
		list[i] = marks[i].Event
	}
	r.events = eventlog.NewRecent(len(list) + 1)
	r.events.Number(list)
	r.events.Add(list...)
	return nil
}

// publish makes the moment that is played the one that is live.
func (r *replayed) publish(ctx context.Context) error {
	s, err := r.player.Next(ctx)
	if err != nil {
		return err
	}
	r.feed.Publish(named(s))
	return nil
}

// named marks the host's name as that of a recording: a viewer must not mistake
// the page for the present.
func named(s *model.Snapshot) *model.Snapshot {
	s.Host.Name += " (recording)"
	return s
}

// play publishes what is played, once a second, or more often if that goes by
// faster.
func (r *replayed) play(ctx context.Context) {
	ticker := time.NewTicker(min(max(time.Duration(float64(time.Second)/r.Speed), 250*time.Millisecond), time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = r.publish(ctx) // what cannot be read leaves what was shown
		}
	}
}

func (r *replayed) routes() http.Handler {
	o := api.Options{
		Name: Name, Feed: &r.feed, Ledger: ledger.New(ledger.Options{}), Version: version.Version, Recording: true,
		// The recording is for those who may read its file: others see of it what they
		// see of a host, and this one's blocks only who has the address.
		Hiding: hostHiding, Key: r.key,
		Blocks: r.blocks, BlocksAt: r.blocksAt, Failures: r.failures,
		Interval: r.charts.apart,
		Now:      func() time.Time { return r.player.Status().Pos },
		// What lies between the boards is not recorded, and this host may be another.
		Topology: func(s *model.Snapshot) *model.Topology { return collect.Topology(hostfs.At(r.empty), s) },
	}
	memory := past.Memory{
		Range:  r.charts.ranges,
		Events: func() past.EventLog { return r.events },
		Past:   r.at,
		Span: func() (oldest, newest time.Time) {
			st := r.player.Status()
			return st.First, st.Last
		},
	}
	memory.Serve(&o)
	page.Moments(memory.Snapshot).Serve(&o)
	server := api.New(o)
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.StripPrefix("/api", server.Handler()))
	mux.Handle("/", web.Handler())
	return mux
}

// at is the snapshot of a moment.
func (r *replayed) at(t time.Time) (time.Time, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.past.Seek(t)
	if err != nil {
		return t, nil, err
	}
	s, err := c.Snapshot()
	if err == nil && s == nil {
		err = recording.ErrEmpty
	}
	if err != nil {
		return t, nil, err
	}
	return s.Time, wire.Append(nil, named(s)), nil
}

// blocks are those of a process at the moment that is played.
func (r *replayed) blocks(pid int) (found api.BlocksOf, ok bool) {
	_ = r.player.With(func(s *recording.State) error {
		found, ok = heldBy(s, pid)
		return nil
	})
	return found, ok
}

// blocksAt are those of another moment.
func (r *replayed) blocksAt(pid int, at time.Time) (api.BlocksOf, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.past.Seek(at)
	if err != nil {
		return api.BlocksOf{}, false
	}
	return heldBy(c.State, pid)
}

// hostHiding is how this host's /proc hides processes. Options that cannot be
// read hide.
func hostHiding() api.Hiding {
	b, err := proc.HostMounts(hostfs.Root{})
	if err != nil {
		return api.Hiding{Level: 2, GID: -1}
	}
	return api.ParseHiding(b)
}
