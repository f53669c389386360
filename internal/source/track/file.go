package track

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/source/devshm"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// file is a ledger that is held open.
type file struct {
	devshm.ID
	path    string // as we reach it
	fd      int
	uid     int
	seen    uint64      // the sweep in which it was last found
	in      *devshm.Dir // where, during that sweep
	name    string      // and under which name
	epoch   uint64      // of ledger
	ledger  *ledgerfile.Ledger
	holder  int // pid; 0: none that we can see
	start   uint64
	deadAt  time.Time // when it was first found without a holder
	told    bool      // its end has been reported
	resting bool      // it is to be read, and its user's turn has not come
	result  *Process  // of ledger and holder
	work    ledgerfile.WorkReader

	// What it tells, event by event.
	next    uint64 // the event that comes next
	lost    uint64
	behind  bool // events were missed, and what holds has not been read since
	drained bool // it has ended, and all was read
	places  *ledgerfile.Ledger
}

// errForeign is the error of a file that no ledger can be.
var errForeign = errors.New("not a regular file")

// open opens a ledger without trusting what is behind its name.
func open(d *devshm.Dir, path, name string) (*file, error) {
	fd, err := unix.Openat(d.FD, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: path, Err: errForeign}
	}
	return &file{ID: devshm.IDOf(&st), fd: fd, uid: int(st.Uid)}, nil
}

func (f *file) close() {
	unix.Close(f.fd)
	f.fd = -1
}

// remove removes a dead ledger, if it still is the file that was judged. It is
// for the sweep in which the file was seen.
func (f *file) remove() error {
	st, err := f.in.Stat(f.name)
	if err != nil {
		return err
	}
	if devshm.IDOf(&st) != f.ID {
		return fs.ErrNotExist
	}
	return unix.Unlinkat(f.in.FD, f.name, 0)
}
