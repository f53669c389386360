package allocsock

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api/apitype"
)

// work is a kind of work that the loop does in a turn.
type work uint8

const (
	workEvents  work = iota // finding the users to serve
	workClients             // what clients sent
	workResults             // what was made outside the loop
	workSettle              // messages that nothing followed
	workAccept              // new clients
	workEnds                // processes that have exited
	workOther
	numWorks
)

var workNames = [numWorks]string{"events", "clients", "results", "settling", "accepting", "ends", "other"}

// turn is an apitype.Turn as it is measured.
type turn struct {
	took, cpu time.Duration
	work      work
	workTook  time.Duration
}

func (t turn) view() apitype.Turn {
	if t.took == 0 {
		return apitype.Turn{}
	}
	return apitype.Turn{Took: t.took.Seconds(), CPU: t.cpu.Seconds(), Work: workNames[t.work], WorkTook: t.workTook.Seconds()}
}

// loopStats measures turns and steps. The loop writes, any goroutine reads.
type loopStats struct {
	startedAt atomic.Int64 // start of the present turn in ns; 0 while waiting
	cpu       cpuClock     // of the loop alone

	mu            sync.Mutex
	turns         uint64
	longest, busy window[turn]
	client        window[time.Duration]
}

// window is a maximum over the last one or two minutes.
type window[T any] struct {
	since             time.Time
	now, before, ever T
}

func (w *window[T]) add(v T, less func(a, b T) bool, at time.Time) {
	if at.Sub(w.since) > time.Minute {
		var zero T
		w.since, w.before, w.now = at, w.now, zero
	}
	if less(w.now, v) {
		w.now = v
	}
	if less(w.ever, v) {
		w.ever = v
	}
}

func (w *window[T]) longest(less func(a, b T) bool) T {
	if less(w.now, w.before) {
		return w.before
	}
	return w.now
}

func byTook(a, b turn) bool            { return a.took < b.took }
func byCPU(a, b turn) bool             { return a.cpu < b.cpu }
func byLength(a, b time.Duration) bool { return a < b }

// startTurn starts a turn, at s.now.
func (s *Server) startTurn() {
	s.turn++
	s.clock, s.othersSpent, s.work = s.now, 0, [numWorks]time.Duration{}
	s.loopStats.startedAt.Store(s.now.UnixNano())
	s.loopStats.cpu.startTurn(s.now)
}

// mark records what the time since the last mark or step was spent on.
func (s *Server) mark(w work) {
	now := time.Now()
	s.work[w] += now.Sub(s.clock)
	s.clock = now
}

// endTurn ends a turn.
func (s *Server) endTurn() {
	s.mark(workOther)
	t := turn{took: s.clock.Sub(s.now)}
	for w, took := range s.work {
		if took > t.workTook {
			t.work, t.workTook = work(w), took
		}
	}
	l := &s.loopStats
	t.cpu = l.cpu.endTurn(t.took, s.clock)
	l.startedAt.Store(0)
	l.mu.Lock()
	l.turns++
	l.longest.add(t, byTook, s.clock)
	l.busy.add(t, byCPU, s.clock)
	l.mu.Unlock()
}

func (l *loopStats) step(took time.Duration) {
	if took < 50*time.Microsecond {
		return // of no interest, and there are many
	}
	l.mu.Lock()
	l.client.add(took, byLength, time.Now())
	l.mu.Unlock()
}

// cpuClock measures the CPU time of turns. The clock of a thread takes a system
// call, so short turns are measured together.
type cpuClock struct {
	used  time.Duration // by our thread, when the clock was last read
	at    time.Time     // when that was
	turns time.Duration // what turns have taken since
}

const (
	cpuAge   = time.Millisecond       // an older reading cannot be used for the next turn
	cpuTurns = 200 * time.Microsecond // turns that are measured together
)

func (c *cpuClock) startTurn(now time.Time) {
	if now.Sub(c.at) > cpuAge {
		c.readClock(now)
	}
}

// endTurn returns an upper bound of the CPU time of a turn.
func (c *cpuClock) endTurn(took time.Duration, now time.Time) time.Duration {
	if c.turns += took; c.turns < cpuTurns {
		return took
	}
	before := c.used
	c.readClock(now)
	return min(took, c.used-before)
}

func (c *cpuClock) readClock(now time.Time) { c.used, c.at, c.turns = threadTime(), now, 0 }

// sinceRead is the CPU time of our thread since the clock was last read.
func (c *cpuClock) sinceRead() time.Duration { return threadTime() - c.used }

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("BUG: no clock: " + errno.Error())
	}
	return time.Duration(ts.Nano())
}

// Loop may be called from any goroutine, also when the loop is stuck.
func (s *Server) Loop() apitype.Loop {
	l := &s.loopStats
	var out apitype.Loop
	if at := l.startedAt.Load(); at != 0 {
		out.Lag = max(time.Since(time.Unix(0, at)), 0).Seconds()
	}
	s.postedMu.Lock()
	out.Queue = len(s.posted)
	s.postedMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Turns = l.turns
	out.Longest, out.Busiest = l.longest.longest(byTook).view(), l.busy.longest(byCPU).view()
	out.LongestTurn, out.WorstEver, out.WorstCPU = out.Longest.Took, l.longest.ever.took.Seconds(), l.busy.ever.cpu.Seconds()
	out.LongestStep, out.WorstStep = l.client.longest(byLength).Seconds(), l.client.ever.Seconds()
	out.DyingNow, out.HurriedEnds, out.LostLogLines = s.count.dying.Load(), s.count.hurried.Load(), s.count.lostLines.Load()
	return out
}
