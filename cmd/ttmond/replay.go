package main

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

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/httpguard"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/version"
	page "github.com/ttmon/ttmon/internal/view/web"
	"github.com/ttmon/ttmon/internal/wire"
)

// replayed is a recording behind the page and the API: what is live there is
// the moment that is played, and what is past is the rest of the recording.
type replayed struct {
	listen string
	from   time.Duration
	speed  float64
	paused bool
	out    io.Writer

	key    string
	empty  string // a folder with nothing in it
	player *recording.Player
	feed   api.Feed
	events *eventlog.Log
	charts *recordedCharts

	mu   sync.Mutex // for past, which has a place of its own in the file
	past *recording.Reader
}

// replayCommand is what `ttmon replay --serve` runs.
func replayCommand() *cobra.Command {
	r := &replayed{}
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "serves a recording of ttmon record as a page, as if it happened now",
		Args:  takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.out = cmd.OutOrStdout()
			return r.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.listen, "listen", "127.0.0.1:0", "`ADDR` of this machine to serve at; port 0 is any that is free")
	f.DurationVar(&r.from, "from", 0, "begin so much `TIME` after the beginning")
	f.Float64Var(&r.speed, "speed", 1, "play `N` times as fast")
	f.BoolVar(&r.paused, "paused", false, "stay at that moment")
	return cmd
}

func (r *replayed) run(ctx context.Context, path string) error {
	c := listenConfig{Address: r.listen}
	if err := c.check(); err != nil {
		return usageError{err}
	}
	played, err := recording.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer played.Close()
	if r.past, err = recording.Open(path); err != nil {
		return usageError{err}
	}
	defer r.past.Close()
	r.player = recording.NewPlayer(played)
	first, _, ok := r.past.Span()
	if !ok {
		return usageError{fmt.Errorf("%s: nothing is recorded in it yet", path)}
	}
	dir, err := os.MkdirTemp("", "ttmond-replay-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.empty = filepath.Join(dir, "empty")
	if err := os.Mkdir(r.empty, 0o700); err != nil {
		return err
	}
	if err := r.openEvents(filepath.Join(dir, "events")); err != nil {
		return err
	}
	defer r.events.Close()
	r.player.Go(first.Add(r.from))
	r.player.SetSpeed(r.speed)
	r.player.Play(!r.paused)
	if err := r.publish(ctx); err != nil {
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.listen)
	if err != nil {
		return fmt.Errorf("serving the recording: %w", err)
	}
	r.key = rand.Text()
	fmt.Fprintf(r.out, "http://%s/#ticket=%s\n", l.Addr(), r.key)
	r.charts = newRecordedCharts()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.play(ctx)
	go r.charts.read(ctx, path)
	return serveHTTP(ctx, httpguard.NewListener(l, maxHTTPConns), r.routes(), c, slog.New(slog.DiscardHandler))
}

// openEvents makes the log of a recording's events, for as long as it is served.
func (r *replayed) openEvents(dir string) (err error) {
	if r.events, err = eventlog.Open(dir); err != nil {
		return err
	}
	marks, err := r.past.Events()
	if err != nil {
		return err
	}
	for i := range marks {
		if err := r.events.Append(marks[i].Event); err != nil {
			return err
		}
	}
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

// named says in the name of the host that it is a recording: whoever looks at
// the page must not take it for the present.
func named(s *model.Snapshot) *model.Snapshot {
	s.Host.Name += " (recording)"
	return s
}

// play publishes what is played, once a second, or more often if that goes by
// faster.
func (r *replayed) play(ctx context.Context) {
	ticker := time.NewTicker(min(max(time.Duration(float64(time.Second)/r.speed), 250*time.Millisecond), time.Second))
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
	server := api.New(api.Options{
		Feed: &r.feed, Ledger: ledger.New(ledger.Options{}), Version: version.Version, Recording: true,
		// The recording is for those who may read its file: others see of it what they
		// see of a host, and this one's blocks only who has the address.
		Hiding: readHiding, Key: r.key,
		Blocks: r.blocks, BlocksAt: r.blocksAt,
		Interval: r.charts.apart,
		Now:      func() time.Time { return r.player.Status().Pos },
		// What lies between the boards is not recorded, and this host may be another.
		Topology: func(s *model.Snapshot) *model.Topology { return collect.Topology(hostfs.At(r.empty), s) },
		Memory: api.Memory{
			Range:  r.charts.ranges,
			Events: func() *eventlog.Log { return r.events },
			Past:   r.at,
			Span: func() (oldest, newest time.Time) {
				st := r.player.Status()
				return st.First, st.Last
			},
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.StripPrefix("/api", server.Handler()))
	mux.Handle("/", page.Handler())
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
