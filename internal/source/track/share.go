package track

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Everybody can put files into /dev/shm: what one user, and all of them, can
// make us hold open, keep and read is bounded.

// maxFiles is how many ledgers are held open, of which a user may have a
// quarter, and root has a reserve. A process keeps one ledger, and the largest
// host has 32 chips. The daemon has 1536 descriptors for all that is not a
// connection.
const maxFiles = 512

// fileLimit is how maxFiles are divided.
func fileLimit() budget.Limit { return budget.Divide(maxFiles) }

var errTooMany = errors.New("there are more ledgers than are read")

// user is what a user's ledgers cost.
type user struct {
	files  int64
	memory int64 // of copies
	// read is how long reading them took.
	read budget.Meter
}

// Reading the ledgers of a user may take readBurst at once, and then one in
// readPart of the time. A ledger of ten thousand blocks takes some 3 ms.
const (
	readBurst = 100 * time.Millisecond
	readPart  = 5
)

// errResting is the error of a ledger whose user's ledgers have taken too long:
// it is read later.
var errResting = errors.New("it is not its turn")

func (r *Reader) mayOpen(uid int) bool {
	own := int64(0)
	if u := r.users[uid]; u != nil {
		own = u.files
	}
	return fileLimit().Allows(uid, own, int64(len(r.files)), 1)
}

func (r *Reader) add(f *file) {
	r.files[f.ID] = f
	if r.users[f.uid] == nil {
		r.users[f.uid] = &user{read: budget.Meter{Part: readPart}}
	}
	r.users[f.uid].files++
}

// setLedger replaces the copy of a ledger; nil: there is none.
func (r *Reader) setLedger(f *file, l *ledgerfile.Ledger) {
	change := int64(0)
	if f.ledger != nil {
		change -= int64(f.ledger.Memory)
	}
	if l != nil {
		change += int64(l.Memory)
	}
	f.ledger, f.result = l, nil
	r.users[f.uid].memory += change
	r.memory += change
}

// left is how many bytes the copy of a ledger may take.
func (r *Reader) left(f *file) int64 {
	u, own := r.users[f.uid], int64(0)
	if f.ledger != nil {
		own = int64(f.ledger.Memory)
	}
	return r.opts.Memory.Left(f.uid, u.memory-own, r.memory-own)
}

// load brings the copy of a ledger up to date.
func (r *Reader) load(f *file) error {
	if f.ledger != nil && !f.ledger.Moving {
		epoch, err := r.copy.Epoch(f.fd)
		if err == nil && epoch == f.epoch {
			return nil
		}
	}
	if r.opts.Memory != (budget.Limit{}) {
		if !budget.Privileged(f.uid) && r.users[f.uid].read.Spent(time.Now()) > readBurst {
			return errResting
		}
		r.copy.MaxMemory = uint64(max(1, r.left(f)))
	}
	l, err := r.copy.Read(f.fd)
	if errors.Is(err, ledgerfile.ErrTooLarge) {
		r.setLedger(f, nil) // what was read of it before is too much, too
	}
	if err != nil {
		return err
	}
	r.setLedger(f, l)
	f.epoch = l.Epoch
	return nil
}

// forgedError says that a ledger is not of the user of the process that it
// speaks for.
type forgedError struct{ uid, pid int }

func (e *forgedError) Error() string {
	return fmt.Sprintf("user %d may not keep the ledger of process %d", e.uid, e.pid)
}

// mayKeep reports whether the owner of a ledger is the user of a process, or
// root: a program may have made it before it gave up its privileges.
func (r *Reader) mayKeep(f *file, pid int) bool {
	st, err := proc.ReadStatus(r.opts.Root, pid)
	return err == nil && st.Memory && (f.uid == 0 || slices.Contains(st.UIDs, f.uid))
}
