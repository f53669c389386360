package proc

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Guard runs what may block for as long as somebody else likes. Files that
// show a process's memory (cmdline, environ, maps) are served under its memory
// lock and from its pages: a process that waits for a driver while it maps a
// chip holds that lock for as long as the chip resets, and a process whose
// pages live on a dead file system never answers. What a process sees as its
// root may be mounted from anywhere.
//
// All reads of one sweep share one amount of patience, and a process that did
// not answer is not asked again before it has. The waits are killable, so they
// never keep us from exiting. Where the machine is so busy that we ourselves
// are not run in time, nothing has been learned about a process, and it gets
// more.
type Guard struct {
	patience time.Duration
	left     time.Duration // of patience, in this sweep
	stuck    map[model.ProcessID]stuck
	users    map[int]int // how many of them each user has
}

// stuck is a process that did not answer.
type stuck struct {
	uid  int
	done <-chan struct{} // closed when it has
}

// Each process that does not answer costs a thread, and a user can start
// thousands of them: beyond these no more of the user's are asked. What may not
// be traced belongs to root, whoever runs it, so root has a limit, too.
const (
	maxStuck     = 8
	maxStuckRoot = 128
)

// mayAsk reports whether a process may be asked, given who does not answer.
func (g *Guard) mayAsk(id model.ProcessID) bool {
	if len(g.stuck) < maxStuck {
		return true
	}
	uid, _ := Owner(hostfs.Root{}, id.PID)
	if uid == 0 {
		return g.users[uid] < maxStuckRoot
	}
	return g.users[uid] < maxStuck
}

// giveUp notes that a process does not answer.
func (g *Guard) giveUp(id model.ProcessID, done <-chan struct{}) {
	uid, _ := Owner(hostfs.Root{}, id.PID)
	g.stuck[id] = stuck{uid, done}
	g.users[uid]++
}

// answered is the channel of what was never asked.
var answered = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// usual is how long a read takes that nobody holds up. It costs no patience,
// and is granted when there is none left.
const usual = 5 * time.Millisecond

// grace is how much longer it may take on a machine that is too busy to tell.
const grace = 2 * time.Second

// NewGuard returns a guard with this much patience per sweep.
func NewGuard(patience time.Duration) *Guard {
	return &Guard{patience: patience, left: patience, stuck: map[model.ProcessID]stuck{}, users: map[int]int{}}
}

// begin starts a sweep.
func (g *Guard) begin() {
	g.left = g.patience
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

// Run calls f, about a process, in a goroutine and waits for it while patience
// lasts. f must own everything it touches: after a hostfs.ErrTimeout it goes on
// alone, until returned is closed.
func (g *Guard) Run(id model.ProcessID, f func()) (returned <-chan struct{}, err error) {
	if x, ok := g.stuck[id]; ok {
		return x.done, hostfs.ErrTimeout // one lost thread per process is enough
	}
	if !g.mayAsk(id) {
		return answered, hostfs.ErrTimeout
	}
	done := make(chan struct{})
	asked := time.Now()
	var begun atomic.Int64 // ns after asked; 0: f has not been run yet
	var took time.Duration
	go func() {
		defer close(done)
		begin := time.Now()
		begun.Store(max(1, int64(begin.Sub(asked))))
		f()
		took = time.Since(begin)
	}()
	wait := max(g.left, usual)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for due := asked.Add(wait); ; {
		select {
		case <-done:
			g.left -= max(0, took-usual)
			return done, nil
		case <-timer.C:
		}
		now := time.Now()
		if starved := begun.Load() == 0 || now.Sub(due) > usual; !starved || now.Sub(asked) > wait+grace {
			g.left = 0
			g.giveUp(id, done)
			return done, hostfs.ErrTimeout
		}
		// Either f or this goroutine was not run when it was due.
		again := time.Duration(begun.Load()) + wait - now.Sub(asked) // what is left of the time since f began
		again = max(again, usual)
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
	if _, err := g.Look(p, func(dir hostfs.Dir) { b, readErr = dir.Append(buf[:0], name, limit) }); err != nil {
		return nil, err
	}
	return b, readErr
}

// Look is Run for what is to be looked at below /proc/<pid>: f gets that
// directory as its own, for as long as it runs.
func (g *Guard) Look(p *Process, f func(dir hostfs.Dir)) (returned <-chan struct{}, err error) {
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

// noProcess tells whether an error means that there is no such process, or
// none any more.
func noProcess(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT)
}
