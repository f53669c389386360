package proc

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Guard runs reads that may block for as long as another process likes. The
// kernel reads cmdline, environ and maps under the process's memory lock and
// from its pages: a process that waits for a driver while it maps a chip holds
// that lock until the chip has reset, and reading a process whose pages are on
// a dead file system never returns. What a process sees as its root may be
// mounted from anywhere. All reads of one sweep share one timeout, and a
// process whose read blocks is not read again until that read returns. The
// waits are killable, so they never delay our exit. Where the machine is so
// busy that we are not scheduled in time, the timeout is extended: nothing is
// known about the process yet.
type Guard struct {
	timeout time.Duration
	left    time.Duration // of timeout, in this sweep
	stuck   map[model.ProcessID]stuck
	users   map[int]int // stuck processes by user
}

// stuck is a process with a read that has not returned.
type stuck struct {
	uid  int
	done <-chan struct{} // closed when it returns
}

// Each blocked read costs a thread, and a user can start thousands of processes
// that cause one: beyond these limits no more of the user's are read. A process
// that may not be traced belongs to root, regardless of the user that runs it,
// so root has a limit, too.
const (
	maxStuck     = 8
	maxStuckRoot = 128
)

// mayRun reports whether a read of a process may be started, given those that
// are stuck.
func (g *Guard) mayRun(id model.ProcessID) bool {
	if len(g.stuck) < maxStuck {
		return true
	}
	uid, _ := Owner(hostfs.Root{}, id.PID)
	if uid == 0 {
		return g.users[uid] < maxStuckRoot
	}
	return g.users[uid] < maxStuck
}

// addStuck records that a read of a process does not return.
func (g *Guard) addStuck(id model.ProcessID, done <-chan struct{}) {
	uid, _ := Owner(hostfs.Root{}, id.PID)
	g.stuck[id] = stuck{uid, done}
	g.users[uid]++
}

// usualReadTime is how long a read takes that nothing blocks. It is not
// deducted from the timeout, and is granted even when none is left.
const usualReadTime = 5 * time.Millisecond

// grace extends the timeout on a machine that is too busy to schedule us.
const grace = 2 * time.Second

// NewGuard returns a guard with this timeout for all reads of a sweep.
func NewGuard(timeout time.Duration) *Guard {
	return &Guard{timeout: timeout, left: timeout, stuck: map[model.ProcessID]stuck{}, users: map[int]int{}}
}

// resetTimeout restores the timeout and drops the processes whose reads have
// returned.
func (g *Guard) resetTimeout() {
	g.left = g.timeout
	for id, x := range g.stuck {
		select {
		case <-x.done:
			delete(g.stuck, id)
			if g.users[x.uid]--; g.users[x.uid] == 0 {
				delete(g.users, x.uid)
			}
		default:
		}
	}
}

// Run calls f, which reads a process, in a goroutine and waits for it until the
// timeout. f must own everything it touches: after a hostfs.ErrTimeout it is
// still running, until returned is closed.
func (g *Guard) Run(id model.ProcessID, f func()) (returned <-chan struct{}, err error) {
	if x, ok := g.stuck[id]; ok {
		return x.done, hostfs.ErrTimeout // one lost thread per process is enough
	}
	done := make(chan struct{})
	if !g.mayRun(id) {
		close(done) // it was never started
		return done, hostfs.ErrTimeout
	}
	started := time.Now()
	var startedAfter atomic.Int64 // ns after started; 0: f has not been run yet
	var took time.Duration
	go func() {
		defer close(done)
		begin := time.Now()
		startedAfter.Store(max(1, int64(begin.Sub(started))))
		f()
		took = time.Since(begin)
	}()
	wait := max(g.left, usualReadTime)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for due := started.Add(wait); ; {
		select {
		case <-done:
			g.left -= max(0, took-usualReadTime)
			return done, nil
		case <-timer.C:
		}
		now := time.Now()
		if starved := startedAfter.Load() == 0 || now.Sub(due) > usualReadTime; !starved || now.Sub(started) > wait+grace {
			g.left = 0
			g.addStuck(id, done)
			return done, hostfs.ErrTimeout
		}
		// Either f or this goroutine was not run when it was due.
		again := time.Duration(startedAfter.Load()) + wait - now.Sub(started) // what is left of the time since f began
		again = max(again, usualReadTime)
		timer.Reset(again)
		due = now.Add(again)
	}
}

// read reads name below the process's directory into buf and returns what was
// read, at most limit bytes of it. Ownership of buf comes back with the
// result: after a timeout, the abandoned read still writes to the old one and
// the result is nil.
func (g *Guard) read(p *Process, name string, buf []byte, limit int) ([]byte, error) {
	var b []byte
	var readErr error
	if _, err := g.RunIn(p, func(dir hostfs.Dir) { b, readErr = dir.Append(buf[:0], name, limit) }); err != nil {
		return nil, err
	}
	return b, readErr
}

// RunIn is Run for files below /proc/<pid>: f gets its own descriptor of that
// directory, closed when f returns.
func (g *Guard) RunIn(p *Process, f func(dir hostfs.Dir)) (returned <-chan struct{}, err error) {
	if x, ok := g.stuck[p.ProcessID]; ok {
		return x.done, hostfs.ErrTimeout
	}
	dir, err := p.dir.Dup()
	if err != nil {
		return nil, err
	}
	return g.Run(p.ProcessID, func() {
		defer dir.Close()
		f(dir)
	})
}

// noProcess reports whether an error means that there is no such process, or
// that it has exited.
func noProcess(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT)
}
