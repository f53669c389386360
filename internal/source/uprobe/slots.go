package uprobe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/hostfs"
)

// Any user can map any number of files under the name of the library. Each is
// read once and costs three descriptors, so both come out of a share of the
// user.

// Time that an ordinary user's libraries may take to be read and to get their
// probes: readBurst at once, and then a part of the time that passes. The kernel
// waits for all processors when a probe is set or taken out.
const (
	readBurst  = 5 * time.Second
	readPart   = 10 // one in
	maxSpent   = 1024
	maxBlocked = 8 // reads that do not end
)

// reads is what reading libraries has cost.
type reads struct {
	spent   map[int]budget.Meter
	blocked []*hostfs.Batch
}

var (
	errReadTime = errors.New("the libraries of its user have taken too long to read; it is not watched")
	errBlocked  = errors.New("too many library reads are stuck")
)

// allow reports why a library of a user may not be read now.
func (r *reads) allow(uid int, now time.Time) error {
	left := r.blocked[:0]
	for _, b := range r.blocked {
		if b.Reap() {
			left = append(left, b)
		} else {
			b.Close()
		}
	}
	r.blocked = left
	switch {
	case len(r.blocked) >= maxBlocked:
		return errBlocked
	case !budget.Privileged(uid) && r.spent[uid].Spent(now) >= readBurst:
		return errReadTime
	}
	return nil
}

// note adds what a library has cost.
func (r *reads) note(uid int, took time.Duration, now time.Time) {
	if len(r.spent) >= maxSpent {
		for uid, x := range r.spent {
			if x.Spent(now) == 0 {
				delete(r.spent, uid)
			}
		}
	}
	m := r.spent[uid]
	m.Part = readPart
	m.Add(took, now)
	r.spent[uid] = m
}

// library finds the record of a file, or begins it and sets its probes, for a
// user, and notes the process that has mapped it (0: none has): a library
// without a process may be dropped at any moment. The file is the library's from
// here on, or closed. Only discover calls it. Nothing is read from the file with mu, which snapshots wait for: it may be
// on a disk that does not answer. The error says why there is no record; a
// library that has one may still have a reason not to be watched.
func (s *Source) library(f *os.File, path string, uid, pid int) (id fileID, l *library, err error) {
	begun := false
	defer func() {
		if !begun {
			f.Close()
		}
	}()
	st, err := stat(f)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return id, nil, err
	}
	id = fileID{uint64(st.Dev), st.Ino}
	if l = s.find(id, pid); l != nil {
		return id, l, nil
	}
	if err := s.reads.allow(uid, time.Now()); err != nil {
		s.logLimited(slog.LevelWarn, uid, "skipping library", "library", path, "err", err)
		return id, nil, err
	}
	if err := s.openRing(); err != nil {
		return id, nil, err
	}
	began := time.Now()
	defer func() { s.reads.note(uid, time.Since(began), time.Now()) }()
	s.retired.finish(id)
	if !s.admit(uid) {
		s.logLimited(slog.LevelWarn, uid, "skipping library", "library", path, "err", errTooMany)
		return id, nil, errTooMany
	}
	number, ok := s.takeNumber()
	if !ok {
		s.slots.Release(uid, 1)
		return id, nil, errTooMany
	}
	begun = true
	if l, err = s.makeLibrary(f, path, uid, number); err != nil {
		s.slots.Release(uid, 1)
		return id, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.libraries[id] = l
	if pid != 0 {
		s.use(pid, id)
	}
	return id, l, nil
}

var errTooMany = errors.New("too many libraries are watched already")

func (s *Source) find(id fileID, pid int) *library {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.libraries[id]
	if l != nil && pid != 0 {
		s.use(pid, id)
	}
	return l
}

// makeLibrary reads a file, which is the library's, and sets the probes. Setting them takes the kernel
// as long as the disk takes for the code.
func (s *Source) makeLibrary(f *os.File, path string, uid int, number uint8) (*library, error) {
	l, blocked := s.readLibrary(f, path, uid)
	l.number = number
	switch {
	case !blocked && errors.Is(l.err, hostfs.ErrTimeout):
		// The host was busy. The next process with this library is watched again.
		s.logLimited(slog.LevelWarn, uid, "cannot attach to tt-metal library", "library", path, "err", l.err)
		s.closeLibrary(l)
		return nil, l.err
	case l.err == nil:
		armed := make(chan struct{})
		go func() {
			s.arm(l)
			close(armed)
		}()
		select {
		case <-armed:
		case <-time.After(s.o.libraryTimeout):
			s.logLimited(slog.LevelWarn, uid, "attaching probes takes too long", "library", path)
			go func() {
				<-armed // its descriptor must not become another file's before
				s.closeLibrary(l)
			}()
			return nil, fmt.Errorf("%s: setting probes: %w", path, os.ErrDeadlineExceeded)
		}
	}
	if l.err != nil {
		s.logLimited(slog.LevelWarn, uid, "cannot attach to tt-metal library", "library", path, "err", l.err)
	} else {
		s.logLimited(slog.LevelInfo, uid, "attached to tt-metal library", "library", path)
	}
	return l, nil
}

// takeNumber finds a number for a library that no other has.
func (s *Source) takeNumber() (n uint8, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := slices.Index(s.numbers[:], false)
	if free < 0 {
		return 0, false
	}
	s.numbers[free] = true
	return uint8(free), true
}

// closeLibrary closes a library, whose number may be another's then. Without mu.
func (s *Source) closeLibrary(l *library) {
	l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[l.number] = false
}

// readLibrary is newLibrary, and keeps a read that does not end.
func (s *Source) readLibrary(f *os.File, path string, uid int) (l *library, blocked bool) {
	l, read := newLibrary(f, path, uid, time.Now().Add(s.o.libraryTimeout))
	if read != nil {
		s.reads.blocked = append(s.reads.blocked, read)
	}
	return l, read != nil
}

// admit takes a place for a library of a user, of one that no process uses if
// need be.
func (s *Source) admit(uid int) bool {
	for range s.o.MaxLibraries { // not for ever: others drop some all the time
		if s.slots.Try(uid, 1) {
			return true
		}
		s.mu.Lock()
		made := s.retired.waiting() > 0 || s.makeRoom(uid)
		s.mu.Unlock()
		if !made {
			break
		}
		s.retired.closeNext() // its place is free then
	}
	return s.slots.Acquire(uid, 1) // counts the refusal
}

// makeRoom drops a library that no process uses, for one of a user: one of that
// user's, or where all have too many, one of any ordinary user's. With mu.
func (s *Source) makeRoom(uid int) bool {
	mine, own := fileID{}, false
	other, any := fileID{}, false
	for id, l := range s.libraries {
		switch {
		case len(l.pids) > 0:
		case l.uid == uid:
			mine, own = id, true
		case budget.Privileged(uid) || !budget.Privileged(l.uid):
			other, any = id, true
		}
	}
	switch {
	case own:
		s.drop(mine)
	case any && s.slots.Fits(uid, 1):
		s.drop(other)
	default:
		return false
	}
	return true
}

// drop ends the watching of a library. Its place is free when it is closed. With mu.
func (s *Source) drop(id fileID) {
	l := s.libraries[id]
	delete(s.libraries, id)
	s.retired.add(id, func() {
		s.closeLibrary(l)
		s.slots.Release(l.uid, 1)
	})
}

// lines counts the lines of the log that are about a user's libraries.
type lines struct {
	since time.Time
	of    map[line]int
}

type line struct {
	uid     int
	message string
}

// maxLines is how many lines a minute of a kind are about one ordinary user's.
const maxLines = 5

func (l *lines) allow(uid int, message string, now time.Time) bool {
	if now.Sub(l.since) > time.Minute {
		l.since, l.of = now, map[line]int{}
	}
	if budget.Privileged(uid) {
		return true
	}
	key := line{uid, message}
	if l.of[key] >= maxLines || l.of[key] == 0 && len(l.of) >= maxSpent {
		return false
	}
	l.of[key]++
	return true
}

// logLimited writes a line about a user's library, unless there are too many.
func (s *Source) logLimited(level slog.Level, uid int, message string, args ...any) {
	if s.lines.allow(uid, message, time.Now()) {
		s.log.Log(context.Background(), level, message, append(args, "uid", uid)...)
	}
}
