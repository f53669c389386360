package allocsock

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Loop is how the loop is doing.
type Loop struct {
	Turns        uint64  `json:"turns"`
	LongestTurn  float64 `json:"longest_turn_s"` // in the last minute or two
	LongestStep  float64 `json:"longest_step_s"` // for one client, in the last minute or two
	TurnP99      float64 `json:"turn_p99_s"`     // since the start, rounded up to a power of two
	Lag          float64 `json:"lag_s"`          // how long the present turn has taken; 0 while waiting
	Queue        int     `json:"queue"`          // results that wait to be taken in
	WorstEver    float64 `json:"worst_turn_s"`   // since the start
	WorstStep    float64 `json:"worst_step_s"`   // since the start
	DyingNow     int64   `json:"dying"`          // processes that have ended and are still heard
	HurriedEnds  uint64  `json:"hurried_ends"`   // of these, those that were not heard to the end
	LostLogLines uint64  `json:"lost_log_lines"` // of users who caused too many
}

// loopStats measures turns and steps. The loop writes, anybody reads.
type loopStats struct {
	begun atomic.Int64 // start of the present turn in ns; 0 while waiting

	mu           sync.Mutex
	turns        uint64
	turn, client window
	counts       [40]uint64 // turns by the logarithm of their time in ns
}

// window is a maximum that forgets.
type window struct {
	since             time.Time
	now, before, ever time.Duration
}

func (w *window) add(d time.Duration, at time.Time) {
	if at.Sub(w.since) > time.Minute {
		w.since, w.before, w.now = at, w.now, 0
	}
	w.now, w.ever = max(w.now, d), max(w.ever, d)
}

func (w *window) longest() time.Duration { return max(w.now, w.before) }

// begin begins a turn.
func (l *loopStats) begin(now time.Time) { l.begun.Store(now.UnixNano()) }

// end ends a turn.
func (l *loopStats) end(took time.Duration, now time.Time) {
	l.begun.Store(0)
	l.mu.Lock()
	l.turns++
	l.turn.add(took, now)
	l.counts[min(bits.Len64(uint64(max(took, 0))), len(l.counts)-1)]++
	l.mu.Unlock()
}

func (l *loopStats) step(took time.Duration) {
	if took < 50*time.Microsecond {
		return // of no interest, and there are many
	}
	l.mu.Lock()
	l.client.add(took, time.Now())
	l.mu.Unlock()
}

// Loop may be called from any goroutine, also when the loop is stuck.
func (s *Server) Loop() Loop {
	l := &s.loopStats
	var out Loop
	if at := l.begun.Load(); at != 0 {
		out.Lag = max(time.Since(time.Unix(0, at)), 0).Seconds()
	}
	s.mailMu.Lock()
	out.Queue = len(s.mail)
	s.mailMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Turns = l.turns
	out.LongestTurn, out.WorstEver = l.turn.longest().Seconds(), l.turn.ever.Seconds()
	out.LongestStep, out.WorstStep = l.client.longest().Seconds(), l.client.ever.Seconds()
	out.TurnP99 = l.quantile(0.99).Seconds()
	out.DyingNow, out.HurriedEnds, out.LostLogLines = s.count.dying.Load(), s.count.hurried.Load(), s.count.lostLines.Load()
	return out
}

func (l *loopStats) quantile(q float64) time.Duration {
	below := uint64(0)
	for i, n := range l.counts {
		if below += n; below > 0 && float64(below) >= q*float64(l.turns) {
			return time.Duration(1) << i
		}
	}
	return 0
}
