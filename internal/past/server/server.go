// Package server is ttmon-server: it follows a host's snapshots and events, and
// remembers, judges over time, tells and serves them. It holds the history, PromQL,
// alerts, remote write, runs, the condition of a Kubernetes node, the page, and
// /metrics on TCP.
//
// It needs no rights: what it knows of the host comes from a ttmond (package
// follow), or is what an ordinary user may see (package local). What a viewer may
// see of other users' processes is ttmond's decision.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/unixsock"
	"github.com/ttmon/ttmon/internal/past/alert"
	"github.com/ttmon/ttmon/internal/past/alert/notify"
	"github.com/ttmon/ttmon/internal/past/httpguard"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
	"github.com/ttmon/ttmon/internal/past/server/vendor"
)

// Options of a Server.
type Options struct {
	Config Config
	Host   Host
	// Configure reads the configuration again; nil: it cannot be.
	Configure     func() (Config, error)
	NodeCondition string // the node of Kubernetes whose condition is set; empty: none
	Log           *slog.Logger
	Logs          *daemon.Logs
}

// Server is a running ttmon-server.
type Server struct {
	opt      Options
	cfg      Config // as it was at the start
	log      *slog.Logger
	host     Host
	feed     api.Feed
	api      *api.Server
	recorder *recorder  // the last snapshot, for scrapes
	archive  *archive   // those before; nil: there is none
	runs     *keep.Book // the programs that used devices; nil likewise
	alerts   *alert.Manager
	outbox   *notify.Outbox
	remotes  *remotes
	vendor   *vendor.Scraper                    // nil: the vendor's exporter is not asked
	http     atomic.Pointer[httpguard.Listener] // nil: HTTP is not served
	bound    atomic.Pointer[string]             // where HTTP is served; nil: nowhere yet

	reloads sync.Mutex
	live    Config // as it was last read
}

// New makes the parts. It opens nothing yet.
func New(o Options) *Server {
	s := &Server{opt: o, cfg: o.Config, live: o.Config, log: o.Log, host: o.Host}
	s.recorder = newRecorder(s.cfg.Metrics, s.hides, s.log, s.selfMetrics, s.interval)
	s.remotes = s.newRemotes()
	if s.cfg.Telemetry != "" {
		s.vendor = vendor.New(s.cfg.Telemetry, s.log)
	}
	if s.cfg.History.Enabled {
		s.archive = newArchive(s.cfg, s.log, s.recorder)
		s.runs = keep.New(keep.Options{
			Dir: s.runsDir(), Keep: s.cfg.History.Runs.Duration, MaxBytes: int64(s.cfg.History.MaxMB) << 20 / 16, Interval: s.interval,
			Report: func(err error) { s.log.Warn("runs are not complete", "err", err) },
		})
		if s.cfg.Alerts.Enabled {
			s.prepareAlerts()
		}
	}
	s.api = s.newAPI()
	return s
}

func (s *Server) runsDir() string { return filepath.Join(s.cfg.StateDir, "runs") }

// recordRuns keeps runs until ctx is done. A ttmon top of the same user may keep them
// until it notices this server.
func (s *Server) recordRuns(ctx context.Context) {
	unlock, err := statedir.Wait(ctx, s.runsDir(), keep.LockFile, nil)
	if err != nil {
		return
	}
	defer unlock()
	s.runs.Restore()
	s.catchUpRuns(ctx)
	defer s.runs.Close()
	s.feed.Follow(ctx, s.runs.Observe)
}

// journalWait is how long a slow disk may take to open the journal before runs are
// observed without it.
const journalWait = 10 * time.Second

// catchUpRuns reads from the journal what the runs on the disk do not have. Of a server
// that was killed that is up to half a minute, with the peaks in it; where the runs were
// lost it is all that the journal has. What comes meanwhile is in the journal, too.
func (s *Server) catchUpRuns(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.archive.logOpen:
	case <-time.After(journalWait):
		s.log.Warn("journal is not open yet; runs lack what is only in it")
		return
	}
	for found := true; found && ctx.Err() == nil; {
		found = false
		err := s.archive.opened().Since(ctx, s.runs.Last(), func(snap *model.Snapshot) {
			if snap.Time.After(s.runs.Last()) {
				s.runs.Observe(snap)
				found = true
			}
		})
		if err != nil && ctx.Err() == nil {
			s.log.Warn("cannot read the snapshots that runs lack", "err", err)
			return
		}
	}
}

// Run serves until ctx is done. ready is called when the socket is there.
func (s *Server) Run(ctx context.Context, ready func()) error {
	l, unlock, err := s.socket()
	if err != nil {
		return err
	}
	defer unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.host.Run(ctx, s) })
	g.Go(func() error { return s.recorder.run(ctx, &s.feed) })
	if s.archive != nil {
		g.Go(func() error { return s.archive.run(ctx, &s.feed) })
		g.Go(func() error { s.recordRuns(ctx); return nil })
	}
	if s.alerts != nil {
		s.runAlerts(ctx, g)
	}
	if node := s.opt.NodeCondition; node != "" {
		g.Go(func() error { return s.setNodeCondition(ctx, node) })
	}
	g.Go(func() error { s.remotes.run(ctx); return nil })
	if s.vendor != nil {
		g.Go(func() error { s.vendor.Run(ctx); return nil })
	}
	g.Go(func() error { return s.listen(ctx) })
	g.Go(func() error { return s.api.Serve(ctx, l) })
	hups := daemon.Hangups()
	g.Go(func() error { return daemon.AwaitReloads(ctx, hups, s.log, s.reload) })
	ready()
	return g.Wait()
}

// socket listens where ttmon asks. The lock beside it keeps a second server away.
func (s *Server) socket() (l net.Listener, unlock func(), err error) {
	if err := unixsock.OwnDir(filepath.Dir(s.cfg.Socket)); err != nil {
		return nil, nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.MkdirAll(s.cfg.StateDir, 0o755); err != nil {
		s.log.Warn("cannot create the state directory; history is in memory only", "err", err)
	}
	lock, err := unixsock.Lock(s.cfg.Socket)
	if err != nil {
		return nil, nil, err
	}
	mode, _ := daemon.ParseMode(s.cfg.Mode)
	fd, err := unixsock.Listen(unixsock.Options{Path: s.cfg.Socket, Mode: mode})
	if err == nil {
		f := os.NewFile(uintptr(fd), s.cfg.Socket)
		l, err = net.FileListener(f)
		f.Close()
	}
	if err != nil {
		os.NewFile(uintptr(lock), "lock").Close()
		return nil, nil, fmt.Errorf("socket: %w", err)
	}
	return l, func() {
		_ = os.Remove(s.cfg.Socket)
		os.NewFile(uintptr(lock), "lock").Close()
	}, nil
}

// Snapshot implements Sink.
func (s *Server) Snapshot(snap *model.Snapshot, body []byte) {
	if s.vendor != nil {
		snap, body = s.vendor.Add(snap), nil
	}
	if firing := s.firing(); len(firing) > 0 || len(snap.Alerts) > 0 {
		snap.Alerts, body = firing, nil
	}
	s.feed.PublishEncoded(snap, body)
}

// Events implements Sink.
func (s *Server) Events(ctx context.Context, list []model.Event) {
	if s.archive == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-s.archive.logOpen:
		s.archive.writeEvents(list)
	}
}

// Resume implements Sink.
func (s *Server) Resume(ctx context.Context) (o model.EventOrigin, err error) {
	if s.archive == nil {
		return o, nil
	}
	select {
	case <-ctx.Done():
		return o, ctx.Err()
	case <-s.archive.logOpen:
		return s.archive.opened().Origin(), nil
	}
}

// interval is the time between two snapshots.
func (s *Server) interval() time.Duration {
	if st, ok := s.host.State(); ok && st.Interval > 0 {
		return st.Every()
	}
	return time.Second
}

// hides reports whether the host hides processes from other users. Until that is
// known it does.
func (s *Server) hides() bool {
	st, known := s.host.State()
	return !known || st.Hiding.Level > 0
}

func (s *Server) hiding() api.Hiding {
	st, known := s.host.State()
	if !known {
		return api.Hiding{Level: 2, GID: -1}
	}
	return api.Hiding(st.Hiding)
}
