package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/daemon"
	"github.com/ttmon/ttmon/internal/handover"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/uprobe"
	"github.com/ttmon/ttmon/internal/unixsock"
)

// Names of the descriptors that one ttmond hands to the next. Those of sockets
// carry the path, so that a successor with another configuration makes its own.
const (
	nameStream   = "stream" // the pipe with what is known
	nameLock     = "lock"
	nameHandover = "handover"
	nameClient   = "client"
	nameAlloc    = "alloc" // in a socket unit: FileDescriptorName=alloc
	nameAPI      = "api"
)

func withPath(name, path string) string { return name + ":" + path }

// inherited are the sockets and the state of a daemon at startup: made by it, or
// passed on by a predecessor or systemd.
//
// Everything that decides who serves is beside the API's socket, in a
// directory where only root, or the user who started ttmond, may write: the
// lock, and the socket on which a successor asks. The allocation socket is in
// /tmp for old clients; a process that occupies it blocks only them.
type inherited struct {
	alloc, api int // listening sockets; -1 for none
	lock       int
	successors *net.UnixListener // where a successor asks
	// The socket is a socket unit's, who keeps it open without us.
	allocActivated, apiActivated bool
	clients                      []int
	state                        handedState
	ledger                       *ledger.Ledger
	restored                     bool          // the ledger is a predecessor's
	from                         *net.UnixConn // the predecessor, who waits for us to be ready
	fromHello                    handover.Hello
	allocProblem                 error         // why the allocation socket is unavailable
	watched                      []uprobe.File // the predecessor's watcher of allocators
}

// handoverPath is where a running daemon can be asked to hand over.
func handoverPath(c Config) string { return c.API.Socket + ".handover" }

// inherit opens or inherits everything a daemon starts with.
func inherit(c Config, log *slog.Logger) (s *inherited, err error) {
	s = &inherited{alloc: -1, api: -1, lock: -1, ledger: emptyLedger(c)}
	files := handover.Inherited()
	defer func() {
		handover.Close(files)
		if err != nil {
			s.close()
		}
	}()
	if c.keep {
		return s, s.inheritAsKeeper(c)
	}
	if err = makeDirs(c, log); err != nil {
		return s, err
	}
	if err = s.acquireLock(c, log); err != nil {
		return s, err
	}
	s.clients = append(s.clients, handover.Extract(&files, nameClient)...)
	return s, s.listen(c, log, &files)
}

// inheritAsKeeper takes over from the daemon that started us to keep its connections.
func (s *inherited) inheritAsKeeper(c Config) error {
	conn, err := handover.Conn(keepFD)
	if err != nil {
		return err
	}
	if s.fromHello, err = handover.ReadHello(conn); err == nil {
		err = s.receiveState(c, conn)
	}
	if err != nil {
		conn.Close()
	}
	return err
}

func emptyLedger(c Config) *ledger.Ledger {
	return ledger.New(ledger.Options{MaxBuffers: c.Alloc.MaxBuffers})
}

// makeDirs makes the directory of the API's socket, where no other user may write,
// and that of the state if it can: without it less survives a restart.
func makeDirs(c Config, log *slog.Logger) error {
	if err := unixsock.OwnDir(filepath.Dir(c.API.Socket)); err != nil {
		return fmt.Errorf("api.socket: %w", err)
	}
	if err := os.MkdirAll(c.StateDir, 0o755); err != nil {
		log.Warn("cannot save state", "err", err)
	}
	return nil
}

// lockTimeout is how long to wait for a lock whose holder does not answer: it may
// have been killed and not be quite gone, or just have taken over itself.
const lockTimeout = 3 * time.Second

// acquireLock acquires the lock, or takes over from its holder: from a running daemon if
// that was asked for, from a keeper always.
func (s *inherited) acquireLock(c Config, log *slog.Logger) error {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		lock, err := unixsock.Lock(c.API.Socket)
		if err == nil {
			if s.lock = lock; c.takeover {
				log.Warn("no running ttmond to take over; starting without its state", "socket", c.API.Socket)
			}
			return nil
		}
		if !errors.Is(err, unixsock.ErrLive) {
			return err
		}
		again, takeErr := s.requestTakeover(c, err)
		switch {
		case takeErr == nil:
			return nil
		case again && time.Now().Before(end):
		case again && !c.takeover:
			return err
		default:
			return takeErr
		}
	}
}

// requestTakeover asks the daemon that holds the lock to hand over. again says that the
// error may pass. locked is the error of the lock.
func (s *inherited) requestTakeover(c Config, locked error) (again bool, err error) {
	conn, hello, err := handover.Dial(handoverPath(c))
	if err != nil {
		again = !errors.Is(err, handover.ErrOtherUser) && !errors.Is(err, fs.ErrPermission)
		return again, fmt.Errorf("taking over: %w", err)
	}
	if !c.takeover && !hello.Keeper {
		conn.Close()
		return false, fmt.Errorf("%w; to replace it: ttmond --takeover", locked)
	}
	s.fromHello = hello
	if err := s.receiveState(c, conn); err != nil {
		conn.Close()
		s.ledger, s.state = emptyLedger(c), handedState{}                              // half of it may have come
		return hello.Keeper, fmt.Errorf("taking over from pid %d: %w", hello.PID, err) // a keeper may just have ended
	}
	return false, nil
}

// listen makes the sockets that were not passed to us.
func (s *inherited) listen(c Config, log *slog.Logger, files *[]handover.File) (err error) {
	if fd := extractOne(files, nameAPI); fd >= 0 {
		s.api, s.apiActivated = fd, true
	} else if s.api < 0 {
		if s.api, err = listenAt(c.API.Socket, c.API.Mode, c.API.Group); err != nil {
			return err
		}
	}
	if fd := extractOne(files, nameAlloc); fd >= 0 {
		s.alloc, s.allocActivated = fd, true
	} else if s.alloc < 0 {
		if s.alloc, s.allocProblem = listenAt(c.Alloc.Socket, c.Alloc.Mode, c.Alloc.Group); s.allocProblem != nil {
			s.alloc = -1
			log.Warn("cannot bind allocation socket; will retry", "err", s.allocProblem)
		}
	}
	for _, fd := range []int{s.alloc, s.api} {
		if fd >= 0 {
			if err := unix.SetNonblock(fd, true); err != nil {
				return fmt.Errorf("preparing a socket: %w", err)
			}
		}
	}
	if s.successors == nil {
		s.successors, err = handover.Listen(handoverPath(c))
	}
	return err
}

func listenAt(path, mode, group string) (int, error) {
	m, _ := daemon.ParseMode(mode)
	gid, _ := daemon.LookUpGroup(group)
	return unixsock.Listen(unixsock.Options{Path: path, Mode: m, GID: gid})
}

// awaitAllocSocket takes the allocation socket when it becomes free.
func (d *ttmond) awaitAllocSocket(ctx context.Context) error {
	if d.inherited.allocProblem == nil {
		return nil
	}
	said := d.inherited.allocProblem.Error()
	tick := time.NewTicker(allocRetry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		fd, err := listenAt(d.cfg.Alloc.Socket, d.cfg.Alloc.Mode, d.cfg.Alloc.Group)
		if err == nil {
			d.server.Listen(fd)
			d.allocProblem.Store(nil)
			d.log.Info("allocation socket bound", "socket", d.cfg.Alloc.Socket)
			return nil
		}
		if text := err.Error(); text != said {
			said = text
			d.allocProblem.Store(&text)
			d.log.Warn("still cannot bind allocation socket", "err", err)
		}
	}
}

// allocRetry is how often an allocation socket that was taken is tried again.
const allocRetry = time.Second

// extractOne takes the first descriptor with a name; -1 if there is none.
func extractOne(files *[]handover.File, name string) int {
	fds := handover.Extract(files, name)
	if len(fds) == 0 {
		return -1
	}
	for _, extra := range fds[1:] {
		unix.Close(extra)
	}
	return fds[0]
}

// close closes everything that is still ours. A predecessor resumes then.
func (s *inherited) close() {
	for _, fd := range append([]int{s.alloc, s.api, s.lock}, s.clients...) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.successors != nil {
		s.successors.SetUnlinkOnClose(false)
		s.successors.Close()
	}
	if s.from != nil {
		s.from.Close()
	}
}
