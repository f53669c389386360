package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/daemon"
	"github.com/ttmon/ttmon/internal/handover"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/stream/backlog"
	"github.com/ttmon/ttmon/internal/unixsock"
	"github.com/ttmon/ttmon/internal/version"
)

// ttmond is a running daemon.
type ttmond struct {
	cfg       Config // as it was at the start
	memory    memoryBudget
	live      Config // as it was last read; guarded by reloads
	reloads   reloads
	keeper    atomic.Bool // alloc.keeper
	log       *slog.Logger
	logs      *daemon.Logs
	ledger    *ledger.Ledger
	server    *allocsock.Server
	collector *background // nil in a keeper
	inherited *inherited
	api       *api.Server
	failures  *failures        // allocations that failed
	backlog   *backlog.Backlog // events, for a ttmon-server that is away
	instance  string           // names this process to followers
	hiding    hidingCache
	watcher   watcher // of allocators, through the kernel
	// handoverFD is a duplicate of the socket on which successors ask.
	handoverFD int
	// successors brings processes that take our place.
	successors chan *succession
	succeeding sync.Mutex // one at a time
	keeping    atomic.Bool
	// allocProblem is why the allocation socket is not served; nil: it is.
	allocProblem atomic.Pointer[string]
	pause        atomic.Int64 // ns that clients waited for our takeover; 0: there was none
	notified     atomic.Int64 // when systemd last took a message, in ns; 0: never
}

// Run runs the daemon until it has stopped or handed over. ctx ends with the signal
// to stop.
func Run(ctx context.Context, o Options, cfg Config) error {
	log, logs := daemon.NewLog(cfg.Log, os.Stderr)
	defer logs.Close()
	daemon.UseFewCores()
	may := newMemoryBudget(daemon.MemoryLimit("/"))
	may.apply()
	cfg.Alloc.MaxBuffers = may.maxBuffers(cfg.Alloc.MaxBuffers, log)
	begun, err := inherit(cfg, log)
	if err != nil {
		return err
	}
	d := &ttmond{cfg: cfg, memory: may, log: log, logs: logs, inherited: begun, ledger: begun.ledger, successors: make(chan *succession), instance: rand.Text()}
	d.keeping.Store(cfg.keep)
	d.live, d.reloads.options = cfg, o
	d.keeper.Store(cfg.Alloc.Keeper)
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
	return d.run(ctx)
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
	d.inherited.successors.SetUnlinkOnClose(false)
	if d.handoverFD, err = duplicate(d.inherited.successors); err != nil {
		return fmt.Errorf("listening for a successor: %w", err)
	}
	return nil
}

// duplicate returns a descriptor of a listener.
func duplicate(l *net.UnixListener) (fd int, err error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return -1, err
	}
	ctl := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(ctl, err)
}

// beat sends systemd the watchdog's keep-alive; called by the loop.
func (d *ttmond) beat() {
	if handover.Notify("WATCHDOG=1") == nil {
		d.notified.Store(time.Now().UnixNano())
	}
}

// run starts the parts, in the order in which they need each other. What answers
// users ends with ctx; the allocation server and the wait for successors end when
// no client needs them any more.
func (d *ttmond) run(ctx context.Context) error {
	if err := d.confirmTakeover(); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	g, life := errgroup.WithContext(life)
	users, cancel := context.WithCancel(life)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	// First of all: after a takeover clients wait for it. To load a program into
	// the kernel, or to read the predecessor's accounts, may take seconds.
	g.Go(func() error { defer end(); return d.serve(life) })
	if d.collector != nil {
		d.watcher = d.newWatcher()
	}
	g.Go(func() error { return d.awaitSuccessors(life) })
	g.Go(func() error {
		if d.cfg.keep {
			defer end()
			d.waitForClients(users)
			return nil
		}
		select {
		case <-life.Done():
			return nil
		case <-users.Done():
		}
		defer end()
		return d.shutDown(life)
	})
	if d.collector != nil {
		d.backlog = backlog.New(filepath.Join(d.cfg.StateDir, "backlog"), d.log)
		d.failures = newFailures(d)
		d.collector.failures = d.failures.gatherer
		d.collector.lines = newLines(d)
		g.Go(func() error { return d.watcher.run(users) })
		g.Go(func() error { d.collector.lines.Run(users); return nil })
		g.Go(func() error { d.failures.gatherer.Run(users); return nil })
		d.api = d.newAPI()
		d.remember(users, g)
		g.Go(func() error { return d.collector.run(users, d.server.Since) })
		g.Go(func() error { return d.serveAPI(users) })
		g.Go(func() error { return d.awaitAllocSocket(users) })
		hups := daemon.Hangups()
		g.Go(func() error { return daemon.AwaitReloads(users, hups, d.log, d.reload) })
	}
	d.announce()
	g.Go(func() error { return d.notifyReady(life) })
	err := g.Wait()
	d.server.Close()
	unix.Close(d.handoverFD)
	d.inherited.successors.Close()
	if errors.Is(err, errHandedOver) || errors.Is(err, context.Canceled) {
		return nil
	}
	if !d.handedOver() {
		_ = os.Remove(handoverPath(d.cfg)) // the lock is still ours
	}
	return err
}

// handedOver reports whether another has our place.
func (d *ttmond) handedOver() bool { return d.inherited.lock < 0 }

// confirmTakeover confirms the takeover to the predecessor, if there is one. Until it has
// agreed nothing has been read.
func (d *ttmond) confirmTakeover() error {
	from := d.inherited.from
	if from == nil {
		return nil
	}
	err := handover.SendTaken(from)
	from.Close()
	d.inherited.from = nil
	if err != nil {
		return fmt.Errorf("taking over from pid %d: %w", d.inherited.fromHello.PID, err)
	}
	if at := d.inherited.state.Paused; at != 0 {
		d.pause.Store(max(bootTime(time.Now())-at, 1))
	}
	unixsock.WritePID(d.inherited.lock)
	return nil
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

// successor waits for the process that takes the daemon's place, and interrupts the
// server when it is ready; nil if ctx is done first.
func (d *ttmond) successor(ctx context.Context, interrupt func()) *succession {
	select {
	case next := <-d.successors:
		next.waitCaughtUp(ctx)
		if ctx.Err() == nil && !next.keeper {
			next.watched = d.watcher.export() // before clients have to wait
		}
		interrupt()
		return next
	case <-ctx.Done():
		return nil
	}
}

// serve runs the allocation server until the daemon ends or a successor takes over.
func (d *ttmond) serve(ctx context.Context) error {
	for {
		runCtx, interrupt := context.WithCancel(ctx)
		found := make(chan *succession, 1)
		go func() { found <- d.successor(runCtx, interrupt) }()
		err := d.server.Run(runCtx)
		paused := time.Now()
		interrupt()
		next := <-found
		switch {
		case next != nil && err == nil:
			err := d.finishHandover(next, paused)
			if err == nil {
				d.inherited.lock = -1
				next.end(nil)
				return errHandedOver
			}
			next.end(err)
			if ctx.Err() != nil {
				return nil
			}
		case err != nil:
			if next != nil {
				next.end(err)
			}
			return err
		default:
			return nil
		}
	}
}
