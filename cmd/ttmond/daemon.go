package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/handover"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/unixsock"
	"github.com/ttmon/ttmon/internal/version"
)

// ttmond is a running daemon.
type ttmond struct {
	cfg       config
	log       *slog.Logger
	ledger    *ledger.Ledger
	server    *allocsock.Server
	collector *background
	begun     *start
	api       *api.Server
	recorder  *recorder // the last snapshot, for scrapes
	archive   *archive  // those before; nil: there is none
	// successors brings processes that ask for our place; the answer is given
	// when they have it, or have failed.
	successors chan succession
}

// succession is a process that wants to take over.
type succession struct {
	conn *net.UnixConn
	done chan error
}

// errHandedOver ends a daemon whose place another has taken.
var errHandedOver = errors.New("handed over")

// run is the daemon's life.
func run(ctx context.Context, cfg config) error {
	log, flush := newLog(cfg.Log, os.Stderr)
	defer flush()
	begun, err := begin(cfg, log)
	if err != nil {
		return err
	}
	d := &ttmond{cfg: cfg, log: log, begun: begun, ledger: begun.ledger, successors: make(chan succession)}
	if !cfg.keep {
		d.collector = newBackground(cfg, log)
	}
	if d.server, err = d.newServer(); err != nil {
		begun.close()
		return err
	}
	return d.run(ctx)
}

func (d *ttmond) newServer() (*allocsock.Server, error) {
	o := allocsock.Options{
		Ledger: d.ledger, Listener: d.begun.alloc, Log: d.log, Where: d.cfg.API.Socket,
	}
	if d.collector != nil {
		o.Devices = d.collector.deviceInfo
	}
	if handover.HasStore() {
		o.OnReporter = func(fd int) {
			if err := handover.Store([]handover.File{{Name: nameClient, FD: fd}}); err != nil {
				d.log.Warn("a client would not survive a crash of ttmond", "err", err)
			}
		}
	}
	s, err := allocsock.New(o)
	if err != nil {
		return nil, err
	}
	if err := s.Import(d.begun.state, d.begun.clients); err != nil {
		return nil, err // the descriptors are the predecessor's too
	}
	d.begun.clients = nil
	return s, nil
}

// run starts the parts, in the order in which they need each other.
func (d *ttmond) run(ctx context.Context) error {
	successor, err := d.takePlace()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.awaitSuccessors(gctx, successor) })
	g.Go(func() error {
		defer cancel() // the others have nothing to do without it
		return d.serve(gctx)
	})
	if d.collector != nil {
		d.prepare()
		d.api = d.newAPI()
		d.remember(gctx, g)
		g.Go(func() error { return d.collector.run(gctx, d.ledger, d.server.Since) })
		g.Go(func() error { return d.serveAPI(gctx) })
		g.Go(func() error { return d.watchdog(gctx) })
	}
	d.announce()
	err = g.Wait()
	successor.Close()
	if errors.Is(err, errHandedOver) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// takePlace tells the predecessor to go, if there is one, and listens for the
// next one. Until the predecessor has agreed nothing has been read.
func (d *ttmond) takePlace() (*net.UnixListener, error) {
	if from := d.begun.from; from != nil {
		err := handover.Taken(from)
		from.Close()
		d.begun.from = nil
		if err != nil {
			return nil, fmt.Errorf("taking over from pid %d: %w", d.begun.fromHello.PID, err)
		}
		unixsock.Sign(d.begun.allocLock)
	}
	return handover.Listen(handoverPath(d.cfg))
}

// announce says that the daemon is ready.
func (d *ttmond) announce() {
	st, led := d.server.Stats(), d.ledger.Stats()
	switch {
	case d.cfg.keep:
		d.log.Info("keeping the connections of a ttmond that was stopped", "connections", st.Connections)
	case d.begun.restored:
		d.log.Info("ttmond goes on", "version", version.Version, "alloc_socket", d.cfg.Alloc.Socket, "socket", d.cfg.API.Socket,
			"connections", st.Connections, "processes", led.Processes, "buffers", led.Buffers)
	default:
		d.log.Info("ttmond is ready", "version", version.Version, "alloc_socket", d.cfg.Alloc.Socket, "socket", d.cfg.API.Socket)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		d.log.Warn("systemd could not be told that ttmond is ready", "err", err)
	}
	if handover.HasStore() {
		// What was stored for this start is ours now. The clients stay in the
		// store: systemd takes each once, and drops it when the client goes.
		for _, name := range []string{nameState, nameLedger} {
			_ = handover.Forget(name)
		}
	}
}

// serve runs the allocation server until the daemon is stopped or somebody
// takes its place.
func (d *ttmond) serve(ctx context.Context) error {
	for {
		runCtx, interrupt := context.WithCancel(ctx)
		var next *succession
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			select {
			case s := <-d.successors:
				next = &s
				interrupt()
			case <-d.deserted(runCtx):
				interrupt()
			case <-runCtx.Done():
			}
		}()
		err := d.server.Run(runCtx)
		interrupt()
		<-waited
		switch {
		case next != nil:
			err := d.give(next.conn)
			next.done <- err
			if err == nil {
				d.server.Close()
				return errHandedOver
			}
			d.log.Warn("a successor did not take over; going on", "err", err)
		case err != nil:
			return err
		case ctx.Err() != nil:
			return d.stop()
		default:
			return nil // a keeper with nobody to keep
		}
	}
}

// deserted closes when a keeper has no connection left.
func (d *ttmond) deserted(ctx context.Context) <-chan struct{} {
	if !d.cfg.keep {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for d.server.Stats().Connections > 0 && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return gone
}

// files lists what a successor gets. The server has been stopped. memfds are
// to be closed by the caller, the rest is the daemon's.
func (d *ttmond) files() (files []handover.File, memfds []int, err error) {
	state, clients, err := d.server.Export()
	if err != nil {
		return nil, nil, err
	}
	add := func(name string, fd int) {
		if fd >= 0 {
			files = append(files, handover.File{Name: name, FD: fd})
		}
	}
	add(withPath(nameLock, d.cfg.Alloc.Socket), d.begun.allocLock)
	add(withPath(nameLock, d.cfg.API.Socket), d.begun.apiLock)
	add(withPath(nameAlloc, d.cfg.Alloc.Socket), d.begun.alloc)
	add(withPath(nameAPI, d.cfg.API.Socket), d.begun.api)
	for _, fd := range clients {
		add(nameClient, fd)
	}
	fd, err := handover.Memfd(nameState, state.Write)
	if err != nil {
		return nil, nil, err
	}
	add(nameState, fd)
	memfds = append(memfds, fd)
	if fd, err = handover.Memfd(nameLedger, d.ledger.WriteState); err != nil {
		unix.Close(memfds[0])
		return nil, nil, err
	}
	add(nameLedger, fd)
	return files, append(memfds, fd), nil
}

// give hands everything to a successor.
func (d *ttmond) give(conn *net.UnixConn) error {
	files, memfds, err := d.files()
	if err != nil {
		return err
	}
	defer func() {
		for _, fd := range memfds {
			unix.Close(fd)
		}
	}()
	return handover.Give(conn, files)
}

// awaitSuccessors answers processes that ask for our place.
func (d *ttmond) awaitSuccessors(ctx context.Context, l *net.UnixListener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("waiting for a successor: %w", err)
		}
		d.answer(ctx, conn)
		conn.Close()
	}
}

func (d *ttmond) answer(ctx context.Context, conn *net.UnixConn) {
	hello := handover.Hello{Version: version.Version, Keeper: d.cfg.keep}
	if err := handover.Greet(conn, hello); err != nil {
		d.log.Debug("a caller did not ask to take over", "err", err)
		return
	}
	s := succession{conn: conn, done: make(chan error, 1)}
	select {
	case d.successors <- s:
		<-s.done
	case <-ctx.Done():
	}
}

// watchdog tells systemd that the daemon is alive, as long as its loop is.
func (d *ttmond) watchdog(ctx context.Context) error {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return nil
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.server.Ping(ctx, every/3); err != nil {
			d.log.Error("the allocation server does not answer", "err", err)
			continue
		}
		_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
	}
}
