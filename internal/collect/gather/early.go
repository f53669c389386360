package gather

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// What reading ledgers before their sweep may cost. A program that fails all the
// time, with a ledger as large as can be in a folder full of files, takes no more
// than that; the sweep, which has bounds of its own, reads its ledger then.
const (
	earlyEvery  = time.Second            // of one process
	earlyPart   = 50                     // of the time that passes: one in 50
	earlyBurst  = 50 * time.Millisecond  // that may be spent at once, by one user
	earlyInAll  = 200 * time.Millisecond // by all users
	earlyMemory = 16 << 20               // of one ledger
	earlyFiles  = 4                      // of one process
	maxMeters   = 1024                   // users and processes that are remembered
)

// earlyReader reads the ledger of a process that has just failed.
type earlyReader struct {
	root   hostfs.Root
	folder string
	last   map[model.ProcessID]time.Time
	users  map[int]*budget.Meter
	all    budget.Meter
	reads  int // attempts, for tests
}

func newEarlyReader(root hostfs.Root) *earlyReader {
	return &earlyReader{
		root: root, folder: root.Path("/dev/shm"), last: map[model.ProcessID]time.Time{}, users: map[int]*budget.Meter{},
		all: budget.Meter{Part: earlyPart},
	}
}

// read hands the ledgers of a process to take, if its user may cause that now.
func (r *earlyReader) read(pid int, now time.Time, take func(path string, l *ledgerfile.Ledger, who failure.Process)) {
	stat, err := proc.ReadStat(r.root, pid)
	if err != nil {
		return
	}
	uid, err := proc.Owner(r.root, pid)
	id := model.ProcessID{PID: pid, StartTicks: stat.Start}
	if err != nil || !r.may(id, uid, now) {
		return
	}
	r.reads++
	began := time.Now()
	for _, path := range r.paths(pid) {
		if l, ok := readLedger(path, pid, uid); ok {
			take(path, l, failure.Process{PID: pid, Start: stat.Start, UID: uid, Name: l.Comm})
		}
	}
	took := time.Since(began)
	r.all.Add(took, now)
	r.users[uid].Add(took, now)
}

// may reports whether the ledger of a process may be read now, and notes that it
// is.
func (r *earlyReader) may(id model.ProcessID, uid int, now time.Time) bool {
	if last, known := r.last[id]; known && now.Sub(last) < earlyEvery || !known && len(r.last) >= maxMeters {
		return false
	}
	m := r.users[uid]
	if m == nil {
		if len(r.users) >= maxMeters {
			return false
		}
		m = &budget.Meter{Part: earlyPart}
		r.users[uid] = m
	}
	if m.Spent(now) > earlyBurst || r.all.Spent(now) > earlyInAll {
		return false
	}
	r.last[id] = now
	return true
}

// forget drops what no longer bounds anything.
func (r *earlyReader) forget(now time.Time) {
	for id, at := range r.last {
		if now.Sub(at) >= earlyEvery {
			delete(r.last, id)
		}
	}
	for uid, m := range r.users {
		if m.Spent(now) == 0 {
			delete(r.users, uid)
		}
	}
}

// paths are the files that may be ledgers of a process.
func (r *earlyReader) paths(pid int) (list []string) {
	fd, err := unix.Open(r.folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	names, err := hostfs.NamesAt(fd)
	if err != nil {
		return nil
	}
	prefix := fmt.Sprintf("%s%d-", ledgerfile.Prefix, pid)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && len(list) < earlyFiles {
			list = append(list, r.folder+"/"+name)
		}
	}
	return list
}

// readLedger reads the ledger that a process of a user keeps. Anybody may put a
// file there: the kernel says who has the lock on it.
func readLedger(path string, pid, uid int) (l *ledgerfile.Ledger, ok bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != uid {
		return nil, false
	}
	if holder, held, err := ledgerfile.Holder(fd); err != nil || !held || holder != pid {
		return nil, false
	}
	r := ledgerfile.Reader{MaxMemory: earlyMemory}
	l, err = r.Read(fd)
	return l, err == nil
}
