package track

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/devshm"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Options say what a Reader reads. The zero Options read this host and change
// nothing.
type Options struct {
	Root hostfs.Root
	// Dir is where ledgers are, instead of /dev/shm.
	Dir string
	// Run takes only the ledgers of this `ttmon run`, and all of those.
	Run string
	// Remove removes what dead processes of our own user left; with All, what
	// anybody's did.
	Remove, All bool
	// RemoveAfter is how long what a process left stays after it was found: another
	// reader, of ttmond, has read it by then.
	RemoveAfter time.Duration
	// RunTimeout is how long the ledger of a dead process that belongs to a
	// `ttmon run` is left to that one. Zero: as long as it lives.
	RunTimeout time.Duration
	// Events says that Events is called, before each Read and after it: the
	// file of a process that has ended is held until its last ones are read.
	Events bool
	// Guard is for what a process can keep from answering: its folder, which may
	// be mounted from anywhere, and what it maps. Nil: it is waited for.
	Guard *proc.Guard
	// Memory is how many bytes copies of ledgers may take, which their users
	// decide about. The zero Limit is none.
	Memory budget.Limit
}

// Process is a process that keeps a ledger.
type Process struct {
	PID   int    // on this host, as the kernel says
	Start uint64 // clock ticks after boot; 0 if it could not be read
	Path  string // of its ledger
	// Ledger is what it wrote down. Immutable.
	Ledger *ledgerfile.Ledger
	// State is the same in the terms of all producers of exact state.
	State *blocks.Process
	// Work is what its programs did; nil where nothing is known of that.
	Work *ledgerfile.Work
}

// Ended is what a process left behind.
type Ended struct {
	Path   string
	UID    int
	Ledger *ledgerfile.Ledger
	Work   *ledgerfile.Work // nil where nothing is known of that
}

// Exited is the last ledger of a process that has exited, in good order or not.
type Exited struct {
	ID     model.ProcessID // on this host; the zero ID: it is not known
	UID    int
	Ledger *ledgerfile.Ledger
}

// Failure is a ledger that could not be read.
type Failure struct {
	Path string
	UID  int // its owner; −1 if not known
	Err  error
}

// Sweep is what was found at one moment.
type Sweep struct {
	Processes []Process // by pid
	// Ended are processes whose end was found in this sweep. Each is reported once.
	Ended []Ended
	// Exited are those of Ended, and the processes that removed their ledgers
	// themselves. Each is listed once.
	Exited []Exited
	// Failures are there as long as they last; the first of them.
	Failures []Failure
}

// Reader reads the ledgers of one host, sweep after sweep. It belongs to one
// goroutine.
type Reader struct {
	opts   Options
	copy   ledgerfile.Reader
	files  map[devshm.ID]*file
	users  map[int]*user // those who have some of them
	memory int64         // of all copies
	dirs   *devshm.Dirs
	seq    uint64
	now    time.Time
}

// NewReader returns a Reader. Close gives its descriptors back.
func NewReader(opts Options) *Reader {
	return &Reader{opts: opts, files: map[devshm.ID]*file{}, users: map[int]*user{}, dirs: devshm.New(opts.Root, opts.Dir)}
}

// Close closes all descriptors. The Reader cannot be used again.
func (r *Reader) Close() {
	for _, f := range r.files {
		f.close()
	}
	clear(r.files)
	r.dirs.Close()
}

// Read makes a sweep. users are processes whose /dev/shm may not be the host's.
func (r *Reader) Read(users []model.ProcessID) *Sweep {
	r.seq++
	r.now = time.Now()
	s := &Sweep{}
	r.find(s, users)
	for _, f := range r.files {
		r.classify(s, f)
	}
	for key, f := range r.files {
		switch {
		case f.seen == r.seq, f.resting:
		case r.opts.Events && f.ledger != nil && f.ledger.TellsEvents && !f.drained:
			f.told = true // gone; its last events are still to be read
		default:
			r.drop(key)
		}
	}
	sorted.By(s.Processes, func(a, b *Process) int { return cmp.Or(cmp.Compare(a.PID, b.PID), strings.Compare(a.Path, b.Path)) })
	sorted.By(s.Ended, func(a, b *Ended) int { return strings.Compare(a.Path, b.Path) })
	sorted.By(s.Exited, func(a, b *Exited) int {
		return cmp.Or(cmp.Compare(a.ID.PID, b.ID.PID), cmp.Compare(a.ID.StartTicks, b.ID.StartTicks))
	})
	sorted.By(s.Failures, func(a, b *Failure) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// drop closes a file.
func (r *Reader) drop(key devshm.ID) {
	f := r.files[key]
	f.close()
	delete(r.files, key)
	r.setLedger(f, nil)
	if u := r.users[f.uid]; u.files == 1 {
		delete(r.users, f.uid)
	} else {
		u.files--
	}
}

// maxFailures bounds the failures that a sweep reports: any user can cause them.
const maxFailures = 64

func (s *Sweep) fail(path string, uid int, err error) {
	if len(s.Failures) < maxFailures {
		s.Failures = append(s.Failures, Failure{path, uid, err})
	}
}

// classify decides what a ledger is: of a live process, left by a dead one, or none.
func (r *Reader) classify(s *Sweep, f *file) {
	if f.told {
		r.removeFileOf(f)
		return
	}
	pid, held, err := ledgerfile.Holder(f.fd)
	if err != nil {
		s.fail(f.path, f.uid, err)
		return
	}
	began, before := time.Now(), f.ledger
	defer func() {
		if now := time.Now(); f.ledger != before {
			r.users[f.uid].read.Add(now.Sub(began), now)
		}
	}()
	err = r.load(f)
	f.resting = errors.Is(err, errResting)
	if f.resting && f.ledger == nil {
		return
	}
	if err != nil && !f.resting { // then what was read before has to do
		r.failed(s, f, held, err)
		return
	}
	if r.opts.Run != "" && f.ledger.Run != r.opts.Run {
		return
	}
	if !held {
		pid, held = r.unlocked(f)
	}
	if f.resting && !held {
		return // it has ended, and what was read before is not its last word
	}
	switch {
	case pid > 0 && !r.mayKeep(f, pid):
		s.fail(f.path, f.uid, &forgedError{f.uid, pid})
		if !held {
			r.removeFileOf(f)
		}
	case held && pid > 0:
		f.deadAt = time.Time{}
		p := *r.process(f, pid)
		p.Work = r.readWork(f)
		s.Processes = append(s.Processes, p)
	case held:
		// It lives, where we cannot see it: nothing to say here.
	case f.seen != r.seq:
		// Its process has ended and removed it, as it should.
		s.Exited = append(s.Exited, r.exited(f))
	default:
		if f.deadAt.IsZero() {
			f.deadAt = r.now
		}
		if r.opts.Run != "" || !r.belongsToRun(f) {
			f.told = true
			s.Ended = append(s.Ended, Ended{f.path, f.uid, f.ledger, r.readWork(f)})
			s.Exited = append(s.Exited, r.exited(f))
			r.removeFileOf(f)
		}
	}
}

// exited is the last ledger of a file. A process that was never seen alive is known
// by the number that it gives itself, where that is ours.
func (r *Reader) exited(f *file) Exited {
	x := Exited{ID: model.ProcessID{PID: f.holder, StartTicks: f.start}, UID: f.uid, Ledger: f.ledger}
	if f.holder == 0 && f.ledger.PIDNamespace == ownNamespace(r.opts.Root) {
		x.ID = model.ProcessID{PID: f.ledger.PID, StartTicks: f.ledger.StartTicks}
	}
	return x
}

// notReadyAge is how long the writer of a ledger may take for its beginning.
const notReadyAge = 10 * time.Second

// failed handles a file that holds no ledger we can read. One that was never
// finished, and has no holder, is rubbish; it says nothing of anybody.
func (r *Reader) failed(s *Sweep, f *file, held bool, err error) {
	if !errors.Is(err, ledgerfile.ErrNotReady) {
		s.fail(f.path, f.uid, err)
		return
	}
	if held {
		return
	}
	if f.deadAt.IsZero() {
		f.deadAt = r.now
	}
	if r.now.Sub(f.deadAt) > notReadyAge {
		f.told = true
		r.removeFileOf(f)
	}
}

// unlocked looks whether the process that a ledger names still maps it: a
// program that closes all its descriptors loses the lock. The pid is 0 where that
// process has ended.
func (r *Reader) unlocked(f *file) (pid int, alive bool) {
	pid = f.ledger.PID
	if pid <= 0 || f.ledger.PIDNamespace != ownNamespace(r.opts.Root) {
		return 0, false
	}
	st, err := proc.ReadStat(r.opts.Root, pid)
	if err != nil || st.Gone() || st.Start != f.ledger.StartTicks {
		return 0, false
	}
	if !r.mayKeep(f, pid) {
		return pid, false
	}
	if !r.hasMapped(model.ProcessID{PID: pid, StartTicks: st.Start}, f.ID) {
		return 0, false
	}
	return pid, true
}

func ownNamespace(root hostfs.Root) uint64 {
	var st unix.Stat_t
	if unix.Stat(root.Path("/proc/self/ns/pid"), &st) != nil {
		return 0
	}
	return st.Ino
}

// mapsTimeout is how long the list of what a process maps may take: how long
// it is, the process decides.
const mapsTimeout = 100 * time.Millisecond

// hasMapped reports whether a process maps a file. One that lives and of which that
// cannot be told in time is believed to.
func (r *Reader) hasMapped(id model.ProcessID, file devshm.ID) bool {
	// "address perms offset major:minor inode path"
	mark := fmt.Sprintf(" %02x:%02x %d ", unix.Major(file.Dev), unix.Minor(file.Dev), file.Ino)
	root, does := r.opts.Root, false
	look := func() {
		mentioned, err := proc.MapsMention(root, id.PID, time.Now().Add(mapsTimeout), mark)
		does = mentioned || errors.Is(err, proc.ErrMapsUnread)
	}
	if r.opts.Guard == nil {
		look()
		return does
	}
	if _, err := r.opts.Guard.Run(id, look); err != nil {
		return true
	}
	return does
}

// belongsToRun reports whether a `ttmon run` will read and remove the ledger.
func (r *Reader) belongsToRun(f *file) bool {
	pid, start, ok := parseRun(f.ledger.Run)
	if !ok {
		return false
	}
	if r.opts.RunTimeout > 0 && r.now.Sub(f.deadAt) > r.opts.RunTimeout {
		return false
	}
	if f.ledger.PIDNamespace != ownNamespace(r.opts.Root) {
		return r.opts.RunTimeout > 0
	}
	st, err := proc.ReadStat(r.opts.Root, pid)
	return err == nil && !st.Gone() && st.Start == start
}

// removeFileOf removes the file of a dead process. It tries again at each sweep while
// the file is there.
func (r *Reader) removeFileOf(f *file) {
	if r.opts.Remove && f.seen == r.seq && r.now.Sub(f.deadAt) >= r.opts.RemoveAfter && (r.opts.All || f.uid == os.Geteuid()) {
		_ = f.remove() // where we may not, another ttmon will
	}
}

// RunName is the value of TTMON_RUN that a `ttmon run` sets: who it is, and a
// number that tells its runs apart.
func RunName(pid int, start uint64, random uint32) string {
	return fmt.Sprintf("%d.%d.%08x", pid, start, random)
}

// OwnRun is a RunName of this process, which no other run has.
func OwnRun() (string, error) {
	st, err := proc.ReadStat(hostfs.Root{}, os.Getpid())
	if err != nil {
		return "", fmt.Errorf("reading our own start time: %w", err)
	}
	return RunName(os.Getpid(), st.Start, rand.Uint32()), nil
}

// parseRun takes a RunName apart.
func parseRun(name string) (pid int, start uint64, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(parts[0])
	start, err2 := strconv.ParseUint(parts[1], 10, 64)
	return pid, start, err == nil && err2 == nil && pid > 0
}
