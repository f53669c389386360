// Package devshm finds the directories in which processes account for device memory:
// the host's /dev/shm, and those that containers have of their own.
//
// It is below the sources shm and track, which say what they want there. Files are
// reached through the descriptor of a directory: what a process sees under its path may
// be replaced at any time, by something that does not answer. A directory that is not a
// memory file system is not read for the same reason.
package devshm

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// ID tells files apart, whatever they are called and wherever they are seen.
type ID struct{ Dev, Ino uint64 }

// IDOf is that of a file.
func IDOf(st *unix.Stat_t) ID { return ID{uint64(st.Dev), st.Ino} }

// Dir is one of the directories.
type Dir struct {
	ID
	Path string // as seen from the host being watched
	FD   int    // O_PATH

	via, found model.ProcessID // through which it is reached, and was last
	seen       uint64          // sweep in which it was
	names      []string
	mtime      unix.Timespec
	listedAt   time.Time
}

func newDir(fd int, path string) (*Dir, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot stat %s: %w", path, err)
	}
	return &Dir{ID: IDOf(&st), Path: path, FD: fd}, nil
}

// errNotMemory means that /dev/shm may be a disk, or FUSE.
var errNotMemory = errors.New("not a memory file system")

// open opens /dev/shm as a process sees it, given its directory below /proc. It may
// block on what is mounted there.
func open(dir hostfs.Dir, pid int) (*Dir, error) {
	fd, err := proc.OpenInRoot(dir, "/dev/shm")
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", PathOf(pid), err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC {
		unix.Close(fd)
		return nil, errNotMemory
	}
	return newDir(fd, PathOf(pid))
}

// PathOf is /dev/shm as a process sees it.
func PathOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/root/dev/shm" }

// mtimeSettled is how long a directory must be unmodified before an equal mtime
// proves equal content: timestamps have the resolution of the kernel's tick.
const mtimeSettled = 100 * time.Millisecond

// Names lists the files whose names are wanted, so many of them at most: anybody can
// put files there. It is read again if it may have changed.
func (d *Dir) Names(now time.Time, most int, wanted func(name string) bool) ([]string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.FD, &st); err != nil {
		return nil, fmt.Errorf("cannot stat %s: %w", d.Path, err)
	}
	if st.Mtim == d.mtime && d.listedAt.Sub(time.Unix(st.Mtim.Unix())) > mtimeSettled {
		return d.names, nil
	}
	all, err := hostfs.NamesAt(d.FD)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", d.Path, err)
	}
	d.names, d.mtime, d.listedAt = nil, st.Mtim, now
	for _, name := range all {
		if len(d.names) < most && wanted(name) {
			d.names = append(d.names, name)
		}
	}
	return d.names, nil
}

// Stat looks at a file of the directory, a link itself and not its target.
func (d *Dir) Stat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(d.FD, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// Dirs are the directories of a host. They are held open while a process leads there,
// and belong to one goroutine.
type Dirs struct {
	Host *Dir // nil: there is none
	Err  error

	path, shown string // of the host's own
	others      map[ID]*Dir
	leads       map[model.ProcessID]lead // of the sweep before
	next        map[model.ProcessID]lead
	seq         uint64
	now         time.Time
}

// lead is what a process was found to see.
type lead struct {
	to  ID
	at  time.Time
	err error
}

const (
	// leadAge is for how long a process is believed to see what it was found to see. It
	// changes when the process mounts another directory.
	leadAge = 15 * time.Second
	// retryAge is when one is asked again whose directory could not be opened.
	retryAge = 5 * time.Second
)

// New returns the directories of a host. instead is read in the place of its own, if it
// is not empty. Only root or we ourselves can have mounted either.
func New(root hostfs.Root, instead string) *Dirs {
	s := &Dirs{path: root.Path("/dev/shm"), shown: "/dev/shm", others: map[ID]*Dir{}}
	if instead != "" {
		s.path, s.shown = instead, instead
	}
	return s
}

// StartSweep begins to find them again.
func (s *Dirs) StartSweep(now time.Time) {
	s.seq++
	s.now, s.next = now, map[model.ProcessID]lead{}
	var st unix.Stat_t
	if s.Host != nil && (unix.Stat(s.path, &st) != nil || IDOf(&st) != s.Host.ID) {
		unix.Close(s.Host.FD)
		s.Host = nil
	}
	if s.Host != nil {
		return
	}
	fd, err := unix.Open(s.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if s.Err = err; err != nil {
		s.Err = fmt.Errorf("opening %s: %w", s.shown, err)
		return
	}
	s.Host, s.Err = newDir(fd, s.shown)
}

// Opener runs a function that opens files of a process, given its directory below
// /proc, for a limited time: a proc.Guard.
type Opener func(open func(dir hostfs.Dir)) (returned <-chan struct{}, err error)

// Reach has the directory that a process sees read in this sweep.
func (s *Dirs) Reach(id model.ProcessID, within Opener) error {
	l, known := s.leads[id]
	age := s.now.Sub(l.at)
	if !known || age >= leadAge || l.err != nil && age >= retryAge {
		l = lead{at: s.now}
		var d *Dir
		if d, l.err = openWithin(within, id.PID); l.err == nil {
			l.to = d.ID
			if s.with(d.ID) == nil {
				d.via = id
				s.others[d.ID] = d
			} else {
				unix.Close(d.FD)
			}
		}
	}
	s.next[id] = l
	if d := s.others[l.to]; d != nil {
		d.seen, d.found = s.seq, id
	}
	return l.err
}

// openWithin opens what a process sees. After a timeout it may still be opened.
func openWithin(within Opener, pid int) (d *Dir, err error) {
	var opened *Dir
	openErr := error(unix.ESRCH) // it was not run
	returned, err := within(func(dir hostfs.Dir) { opened, openErr = open(dir, pid) })
	if err == nil {
		return opened, openErr
	}
	if returned != nil {
		go func() {
			if <-returned; opened != nil {
				unix.Close(opened.FD)
			}
		}()
	}
	return nil, err
}

// All are the directories of this sweep, the host's first. Those are closed to which no
// process has led.
func (s *Dirs) All() (list []*Dir) {
	s.leads = s.next
	if s.Host != nil {
		list = append(list, s.Host)
	}
	for id, d := range s.others {
		if d.seen != s.seq {
			unix.Close(d.FD)
			delete(s.others, id)
			continue
		}
		if s.leads[d.via].to != id { // the process it was found through has exited
			d.via, d.Path = d.found, PathOf(d.found.PID)
		}
		list = append(list, d)
	}
	return list
}

func (s *Dirs) with(id ID) *Dir {
	if s.Host != nil && s.Host.ID == id {
		return s.Host
	}
	return s.others[id]
}

// Of is the directory that a process sees; nil: it is not known.
func (s *Dirs) Of(id model.ProcessID) *Dir {
	l, known := s.next[id]
	if !known || l.err != nil {
		return nil
	}
	return s.with(l.to)
}

// Close closes them.
func (s *Dirs) Close() {
	for _, d := range s.others {
		unix.Close(d.FD)
	}
	clear(s.others)
	if s.Host != nil {
		unix.Close(s.Host.FD)
		s.Host = nil
	}
}
