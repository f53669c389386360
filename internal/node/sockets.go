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

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/node/unixsock"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

// inherited are the sockets and the state of a daemon at startup: made by it, or
// passed on by a predecessor or systemd.
//
// Everything that decides who serves is beside the API's socket, in a
// directory where only root, or the user who started ttmond, may write: the
// lock, and the socket on which a keeper is asked. The allocation socket is in
// /tmp for old clients; a process that occupies it blocks only them.
type inherited struct {
	alloc, api int // listening sockets; -1 for none
	lock       int
	caller     int // who waits to be told that the restart has worked; -1 for none
	// The socket is a socket unit's, who keeps it open without us.
	allocActivated, apiActivated bool
	clients                      []int
	state                        handedState
	ledger                       *ledger.Ledger
	restored                     bool          // the state is a predecessor's
	from                         *net.UnixConn // a predecessor in another process, who waits for us to be ready
	allocProblem                 error         // why the allocation socket is unavailable
	watched                      []uprobe.File // the predecessor's watcher of allocators
}

// keeperPath is where a process that keeps connections is asked for them.
func keeperPath(c Config) string { return c.API.Socket + ".handover" }

// inherit opens or inherits everything a daemon starts with.
func inherit(c Config, log *slog.Logger) (s *inherited, err error) {
	s = &inherited{alloc: -1, api: -1, lock: -1, caller: -1, ledger: emptyLedger(c)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if c.keep {
		conn, err := handover.Conn(keepFD)
		if err == nil {
			err = s.takeFrom(c, conn)
		}
		return s, err
	}
	files := handover.Inherited()
	defer func() { handover.Close(files) }()
	if err = makeDirs(c, log); err != nil {
		return s, err
	}
	if err := s.restore(c, &files); err != nil {
		// It was checked before. Connections are kept; what they had is not known.
		log.Error("cannot read state of previous ttmond; starting without it", "err", err)
	}
	s.assign(c, &files)
	if s.lock < 0 {
		if err = s.acquireLock(c); err != nil {
			return s, err
		}
	}
	return s, errors.Join(s.ledger.Reserve(), s.listen(c, log))
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

// lockTimeout is how long to wait for a lock whose holder serves no client: it may
// have been killed and not be quite gone, or just have taken over itself.
const lockTimeout = 3 * time.Second

// errRunning is what can be done where another ttmond serves.
var errRunning = errors.New("after an upgrade or a change of its configuration: ttmond --reload; to run this one instead, stop that one first, its clients stay connected")

// acquireLock acquires the lock, or takes over from a keeper that holds it.
func (s *inherited) acquireLock(c Config) error {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		lock, err := unixsock.Lock(c.API.Socket)
		if err == nil {
			s.lock = lock
			return nil
		}
		if !errors.Is(err, unixsock.ErrLive) {
			return err
		}
		conn, dialErr := handover.Dial(keeperPath(c))
		if dialErr == nil {
			if dialErr = s.takeFrom(c, conn); dialErr == nil {
				return nil
			}
		}
		serving, connErr := unixsock.Peer(c.API.Socket)
		switch {
		case connErr == nil && serving.Pid > 1: // not systemd's socket
			return fmt.Errorf("%w; %w", err, errRunning)
		case errors.Is(dialErr, fs.ErrPermission):
			return dialErr
		case !time.Now().Before(end):
			return fmt.Errorf("%w; %w", err, errRunning)
		}
	}
}

// takeFrom takes over from a process, up to the point where it waits for our
// confirmation.
func (s *inherited) takeFrom(c Config, conn *net.UnixConn) (err error) {
	files, err := handover.Receive(conn)
	defer func() {
		handover.Close(files)
		if err != nil {
			conn.Close() // it continues
		}
	}()
	if err != nil {
		return err
	}
	if err = s.restore(c, &files); err != nil {
		return err
	}
	if s.assign(c, &files); s.lock < 0 {
		return fmt.Errorf("it gave no lock for %s", c.API.Socket)
	}
	s.from = conn
	return nil
}

// listen makes the sockets that were not passed to us.
func (s *inherited) listen(c Config, log *slog.Logger) (err error) {
	if s.api < 0 {
		if s.api, err = listenAt(c.API.Socket, c.API.Mode, c.API.Group); err != nil {
			return err
		}
	}
	if s.alloc < 0 {
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
	return nil
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

// close closes everything that is still ours. A predecessor in another process
// resumes then.
func (s *inherited) close() {
	for _, fd := range append([]int{s.alloc, s.api, s.lock, s.caller}, s.clients...) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.from != nil {
		s.from.Close()
	}
}
