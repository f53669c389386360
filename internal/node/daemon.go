package node

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/node/stream/backlog"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// ttmond is a running daemon.
type ttmond struct {
	cfg        Config // as it runs
	configured Config // as it was read
	program    string // what a reload executes
	started    time.Time
	memory     memoryBudget
	log        *slog.Logger
	logs       *daemon.Logs
	ledger     *ledger.Ledger
	server     *allocsock.Server
	collector  *background // nil in a keeper
	inherited  *inherited
	api        *api.Server
	failures   *failures        // allocations that failed
	backlog    *backlog.Backlog // events, for a ttmon-server that is away
	instance   string           // names this process to followers
	hiding     hidingCache
	watcher    watcher // of allocators, through the kernel
	// pauses are what is done while the allocation server does not run.
	pauses     chan *pause
	restarting sync.Mutex   // held from the check of a restart to its end
	next       chan request // a restart that was checked
	// allocProblem is why the allocation socket is not served; nil: it is.
	allocProblem atomic.Pointer[string]
	pause        atomic.Int64 // ns that clients waited for us to take over; 0: they did not
	notified     atomic.Int64 // when systemd last took a message, in ns; 0: never
}

// Run runs the daemon until it has stopped or handed over. ctx ends with the signal
// to stop; hups brings those to execute ttmond again.
func Run(ctx context.Context, cfg Config, hups <-chan os.Signal) error {
	log, logs := daemon.NewLog(cfg.Log, os.Stderr)
	defer logs.Close()
	daemon.UseFewCores()
	may := newMemoryBudget(daemon.MemoryLimit("/"))
	may.apply()
	configured := cfg
	cfg.Alloc.MaxBuffers = may.maxBuffers(cfg.Alloc.MaxBuffers, log)
	begun, err := inherit(cfg, log)
	if err != nil {
		return err
	}
	d := &ttmond{
		cfg: cfg, configured: configured, program: program(), started: time.Now(), memory: may, log: log, logs: logs, inherited: begun, ledger: begun.ledger,
		pauses: make(chan *pause), next: make(chan request, 1), instance: rand.Text(),
	}
	if problem := begun.allocProblem; problem != nil {
		text := problem.Error()
		d.allocProblem.Store(&text)
	}
	if !cfg.keep {
		d.collector = newBackground(cfg, may, log, begun.ledger, begun.state.Learned, &d.watcher)
	}
	if err = d.newServer(); err != nil {
		begun.close()
		return err
	}
	return d.run(ctx, hups)
}

func (d *ttmond) newServer() error {
	o := allocsock.Options{
		Ledger: d.ledger, Listener: d.inherited.alloc, Log: d.log, Where: d.cfg.API.Socket,
	}
	if d.collector != nil {
		o.Devices = d.collector.deviceInfo
	}
	if every := handover.WatchdogEvery(); every > 0 && !d.cfg.keep {
		o.BeatEvery, o.Beat = every/4, d.beat
		d.notified.Store(time.Now().UnixNano())
	}
	if handover.HasStore() && !d.cfg.keep {
		o.Store = func(fd int) error { return handover.Store(handover.File{Name: nameClient, FD: fd}) }
	}
	s, err := allocsock.New(o)
	if err != nil {
		return err
	}
	d.server = s
	if err := s.Import(d.inherited.state.Server, d.inherited.clients); err != nil {
		return err // the descriptors are the predecessor's too
	}
	d.inherited.clients = nil
	return nil
}

// beat sends systemd the watchdog's keep-alive.
func (d *ttmond) beat() {
	if handover.Notify("WATCHDOG=1") == nil {
		d.notified.Store(time.Now().UnixNano())
	}
}

// run starts the parts, in the order in which they need each other. What answers
// users ends with the signal to stop, and before another program is executed; the
// allocation server ends when no client needs it any more.
func (d *ttmond) run(ctx context.Context, hups <-chan os.Signal) error {
	if err := d.confirm(); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	g, life := errgroup.WithContext(life)
	// First of all: after a restart clients wait for it. To load a program into
	// the kernel, or to read the predecessor's accounts, may take seconds.
	g.Go(func() error { defer end(); return d.serve(life) })
	g.Go(func() error {
		defer end()
		if d.cfg.keep {
			d.announce()
			return d.keep(life)
		}
		return d.attend(life, ctx, hups)
	})
	err := g.Wait()
	d.server.Close()
	if errors.Is(err, errHandedOver) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// attend runs what answers users, until it may end: with the signal to stop, or as
// another program.
func (d *ttmond) attend(life, stop context.Context, hups <-chan os.Signal) error {
	if d.inherited.restored {
		reapInherited(d.log)
	}
	watching, unwatch := context.WithCancel(life)
	defer unwatch()
	users, dismiss := context.WithCancel(life)
	defer dismiss()
	d.watcher = d.newWatcher()
	watched := make(chan error, 1)
	go func() { watched <- d.watcher.run(watching) }()
	g, users := errgroup.WithContext(users)
	d.startParts(users, g)
	g.Go(func() error { return d.awaitHangups(users, hups) })
	d.announce()
	g.Go(func() error { return d.notifyReady(life) })
	d.answerCaller()
	select {
	case <-life.Done():
	case <-users.Done():
	case <-stop.Done():
	case next := <-d.next:
		next.learned = d.learned() // before the collector is closed, which forgets it
		dismiss()
		if err := g.Wait(); err != nil {
			d.log.Error("part of ttmond failed", "err", err)
		}
		err := d.become(life, stop, next)
		d.log.Error("cannot continue as another ttmond; stopping", "err", err)
	}
	dismiss()
	unwatch()
	err := errors.Join(g.Wait(), <-watched)
	if life.Err() != nil {
		return err
	}
	return errors.Join(err, d.shutDown(life))
}

// startParts starts what answers users, and what finds out the answers.
func (d *ttmond) startParts(users context.Context, g *errgroup.Group) {
	d.backlog = backlog.New(filepath.Join(d.cfg.StateDir, "backlog"), d.log)
	d.failures = newFailures(d)
	d.collector.failures = d.failures.gatherer
	d.collector.lines = newLines(d)
	g.Go(func() error { d.collector.lines.Run(users); return nil })
	g.Go(func() error { d.failures.gatherer.Run(users); return nil })
	d.api = d.newAPI()
	d.remember(users, g)
	g.Go(func() error { return d.collector.run(users, d.server) })
	g.Go(func() error { return d.serveAPI(users) })
	g.Go(func() error { return d.awaitAllocSocket(users) })
}

// awaitHangups executes ttmond again at every hangup.
func (d *ttmond) awaitHangups(ctx context.Context, hups <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hups:
			d.reload(ctx)
		}
	}
}

// announce logs that the daemon is ready.
func (d *ttmond) announce() {
	st, led := d.server.Stats(), d.ledger.Stats()
	switch {
	case d.cfg.keep:
		d.log.Info("holding client connections of a stopped ttmond", "connections", st.Connections)
		return
	case d.inherited.restored:
		d.log.Info("resumed from previous ttmond", "version", version.Version, "alloc_socket", d.cfg.Alloc.Socket, "socket", d.cfg.API.Socket,
			"connections", st.Connections, "processes", led.Processes, "buffers", led.Buffers, "clients_waited", time.Duration(d.pause.Load()).Round(100*time.Microsecond))
	default:
		d.log.Info("ttmond is ready", "version", version.Version, "alloc_socket", d.cfg.Alloc.Socket, "socket", d.cfg.API.Socket)
	}
}

// notifyReady notifies systemd that the daemon is ready, and retries while systemd is
// busy.
func (d *ttmond) notifyReady(ctx context.Context) error {
	for {
		err := handover.Notify("READY=1")
		if err == nil || d.cfg.keep {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			d.log.Warn("cannot notify systemd", "err", err)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}
