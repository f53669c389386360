package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/handover"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/unixsock"
)

// Names of the descriptors that one ttmond hands to the next. Those of sockets
// carry the path, so that a successor with another configuration makes its own.
const (
	nameLock   = "lock"
	nameClient = "client"
	nameState  = "state"
	nameLedger = "ledger"
	nameAlloc  = "alloc" // in a socket unit: FileDescriptorName=alloc
	nameAPI    = "api"
)

func withPath(name, path string) string { return name + ":" + path }

// start is what a daemon begins with: its sockets, and what a predecessor left.
type start struct {
	alloc, api int // listening sockets; -1 for none
	allocLock  int
	apiLock    int
	// The socket is a socket unit's, who keeps it open without us.
	allocActivated, apiActivated bool
	clients                      []int
	state                        allocsock.State
	ledger                       *ledger.Ledger
	restored                     bool          // the ledger is a predecessor's
	from                         *net.UnixConn // the predecessor, who waits for us to be ready
	fromHello                    handover.Hello
}

// handoverPath is where a running daemon can be asked to hand over.
func handoverPath(c config) string { return c.Alloc.Socket + ".handover" }

// begin finds or makes everything a daemon starts with.
func begin(c config, log *slog.Logger) (s *start, err error) {
	s = &start{alloc: -1, api: -1, allocLock: -1, apiLock: -1, ledger: ledger.New(ledger.Options{MaxBuffers: c.Alloc.MaxBuffers})}
	files := handover.Inherited()
	defer func() {
		handover.Close(files)
		if err != nil {
			s.close()
		}
	}()
	if err = makeDirs(c, log); err != nil {
		return s, err
	}
	if err = s.lock(c, log, &files); err != nil {
		return s, err
	}
	if err = s.restore(&files, log); err != nil {
		return s, err
	}
	if c.keep {
		return s, nil
	}
	return s, s.listen(c, &files)
}

// makeDirs makes the directories of the sockets, and that of the state if it
// can: without it the daemon only remembers less.
func makeDirs(c config, log *slog.Logger) error {
	for _, dir := range []string{filepath.Dir(c.Alloc.Socket), filepath.Dir(c.API.Socket)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the directory of a socket: %w", err)
		}
	}
	if err := os.MkdirAll(c.StateDir, 0o755); err != nil {
		log.Warn("no state is kept", "err", err)
	}
	return nil
}

// patience is how long to wait for a lock whose holder does not answer: it may
// have been killed and not be quite gone, or just have taken over itself.
const patience = 3 * time.Second

// lock makes the allocation socket ours, or takes it over: from a running
// daemon if that was asked for, from a keeper always.
func (s *start) lock(c config, log *slog.Logger, files *[]handover.File) error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		lock, err := unixsock.Lock(c.Alloc.Socket)
		if err == nil {
			if s.allocLock = lock; c.takeover {
				log.Warn("no ttmond is running that could be taken over; starting afresh", "socket", c.Alloc.Socket)
			}
			return nil
		}
		if !errors.Is(err, unixsock.ErrLive) {
			return err
		}
		again, takeErr := s.take(c, err, files)
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

// take takes over from the daemon that holds the lock. again says that the
// error may pass. locked is the error of the lock.
func (s *start) take(c config, locked error, files *[]handover.File) (again bool, err error) {
	conn, hello, err := handover.Dial(handoverPath(c))
	if err != nil {
		again = !errors.Is(err, handover.ErrStranger) && !errors.Is(err, fs.ErrPermission)
		return again, fmt.Errorf("taking over: %w", err)
	}
	if !c.takeover && !hello.Keeper && !c.keep {
		conn.Close()
		return false, fmt.Errorf("%w; to replace it: ttmond --takeover", locked)
	}
	taken, err := handover.Ask(conn)
	if err != nil {
		conn.Close()
		return hello.Keeper, fmt.Errorf("taking over from pid %d: %w", hello.PID, err) // a keeper may just have ended
	}
	*files = append(*files, taken...)
	s.from, s.fromHello = conn, hello
	if s.allocLock = takeOne(files, withPath(nameLock, c.Alloc.Socket)); s.allocLock < 0 {
		return false, fmt.Errorf("taking over from pid %d: it gave no lock for %s", hello.PID, c.Alloc.Socket)
	}
	return false, nil
}

// lockSoon locks a socket whose holder may be about to go.
func lockSoon(path string) (int, error) {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		fd, err := unixsock.Lock(path)
		if err == nil || !errors.Is(err, unixsock.ErrLive) || time.Now().After(end) {
			return fd, err
		}
	}
}

// takeOne takes the first descriptor with a name; -1 if there is none.
func takeOne(files *[]handover.File, name string) int {
	fds := handover.Take(files, name)
	if len(fds) == 0 {
		return -1
	}
	for _, extra := range fds[1:] {
		unix.Close(extra)
	}
	return fds[0]
}

// restore reads what a predecessor left: its ledger, its connections.
func (s *start) restore(files *[]handover.File, log *slog.Logger) error {
	s.clients = handover.Take(files, nameClient)
	for _, fd := range handover.Take(files, nameLedger) {
		next := ledger.New(ledger.Options{})
		if err := handover.ReadMemfd(fd, "ledger", next.ReadState); err != nil {
			if s.from != nil {
				return err // the predecessor goes on with it
			}
			log.Error("what processes held before the restart is lost", "err", err)
			continue
		}
		s.ledger, s.restored = next, true
	}
	for _, fd := range handover.Take(files, nameState) {
		err := handover.ReadMemfd(fd, "state", func(r io.Reader) (err error) {
			s.state, err = allocsock.ReadState(r)
			return err
		})
		if err != nil && s.from != nil {
			return err
		}
		if err != nil {
			log.Error("where in their messages clients were is lost", "err", err)
		}
	}
	return nil
}

// listen makes the sockets that nobody passed to us.
func (s *start) listen(c config, files *[]handover.File) (err error) {
	s.alloc, s.allocActivated, err = listenOr(files, nameAlloc, c.Alloc.Socket, c.Alloc.Mode, c.Alloc.Group)
	if err != nil {
		return err
	}
	if s.apiLock = takeOne(files, withPath(nameLock, c.API.Socket)); s.apiLock < 0 {
		if s.apiLock, err = lockSoon(c.API.Socket); err != nil {
			return err
		}
	}
	s.api, s.apiActivated, err = listenOr(files, nameAPI, c.API.Socket, c.API.Mode, c.API.Group)
	return err
}

// listenOr takes a socket that was passed to us, by a socket unit or by a
// predecessor, or makes it.
func listenOr(files *[]handover.File, name, path, mode, group string) (fd int, activated bool, err error) {
	if fd = takeOne(files, name); fd >= 0 {
		return fd, true, unix.SetNonblock(fd, true)
	}
	if fd = takeOne(files, withPath(name, path)); fd >= 0 {
		return fd, false, unix.SetNonblock(fd, true)
	}
	m, _ := parseMode(mode)
	gid, _ := lookUpGroup(group)
	fd, err = unixsock.Listen(unixsock.Options{Path: path, Mode: m, GID: gid})
	return fd, false, err
}

// close closes everything that is still ours. A predecessor goes on then.
func (s *start) close() {
	for _, fd := range append([]int{s.alloc, s.api, s.allocLock, s.apiLock}, s.clients...) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.from != nil {
		s.from.Close()
	}
}
