package truth

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// Who reads what chips report.
type witness string

const (
	byLibrary witness = "libttmon"
	byProbe   witness = "probe"
	byBoth    witness = "libttmon and probe"
	byWaits   witness = "probe, with waits" // uprobe.waits
)

// workJob is a ttnn program whose chips report what the scenario makes up.
type workJob struct {
	*ttnn.Job
	feed    *ttnn.Feed
	d       *daemon
	witness witness
	begun   time.Time // what is so now
}

// enqueue gives the chips work without waiting for it: without any nothing could
// run on them.
func (s *stage) enqueue(j *workJob) {
	s.Helper()
	s.do(j.Job, alloc("a", "dram", 65536), ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
}

// workScenarios: how busy chips are said to be, against what they were fed.
func workScenarios() (list []scenario) {
	for _, c := range []struct {
		name   string
		boards string
		fast   bool
		play   func(*stage, *workJob)
		open   ttnn.Step // how its devices are opened
	}{
		{"7 % busy", "p150a", false, steady(0.07), nil},
		{"70 % busy", "p150a", true, everywhere(0.7), nil},
		{"100 % busy", "p150a", false, steady(1), nil},
		{"nothing ran", "p150a", false, nothingRan, nil},
		{"two chips", "n300", false, twoChips, nil},
		{"a burst", "p150a", false, burst, nil},
		{"killed in full stream", "p150a", false, killedInStream, nil},
		{"the host waits", "p150a", false, hostWaits, nil},
		{"idle after its work", "p150a", false, idleAfter, nil},
		{"programs without an id", "p150a", false, withoutID, nil},
		{"pages that are no programs", "p150a", false, onlySyncs, nil},
		{"a divided device", "p150a", false, divided, nil},
		{"a program of 3 s", "p150a", false, longProgram, nil},
		{"forged pages", "p150a", true, forgedPages, nil},
		{"known gaps", "p150a", true, knownGaps, nil},
		{"a second queue beside the first", "p150a", false, besideAnother, ttnn.Step{"queues": 2}},
	} {
		for _, w := range []witness{byLibrary, byProbe} {
			list = append(list, scenario{
				name: fmt.Sprintf("work: %s by %s", c.name, w), how: alone | when(c.fast, fast),
				play: func(s *stage) { c.play(s, s.fed(c.boards, ttnn.Newest, w, c.open)) },
			})
		}
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Middle, ttnn.Release79, ttnn.Release80} {
		for _, w := range []witness{byLibrary, byProbe} {
			list = append(list, scenario{
				name: fmt.Sprintf("work: 70 %% busy with %s by %s", release, w), how: alone,
				play: func(s *stage) { steady(0.7)(s, s.fed("p150a", release, w, nil)) },
			})
		}
	}
	for _, release := range []string{ttnn.Newest, ttnn.Middle} {
		list = append(list, scenario{
			name: "work: stuck in a finish, from outside, with " + release, how: alone,
			play: func(s *stage) { stuckOutside(s, s.fed("p150a", release, byWaits, nil)) },
		})
	}
	for _, c := range []struct{ release, boards string }{{ttnn.Newest, "n300"}, {ttnn.Middle, "p150a"}} {
		list = append(list, scenario{
			name: fmt.Sprintf("work: programs as slices with %s", c.release), how: alone | when(c.release == ttnn.Newest, fast),
			play: func(s *stage) { sliced(s, s.fed(c.boards, c.release, byProbe, nil)) },
		})
	}
	return append(list, scenario{
		name: "work: 70 % busy by both", how: alone,
		play: func(s *stage) { everywhere(0.7)(s, s.fed("p150a", ttnn.Newest, byBoth, nil)) },
	})
}

// nothingRan: libttmon has seen that nothing was enqueued; from outside no one
// has.
func nothingRan(s *stage, j *workJob) {
	j.begun = time.Now()
	if j.witness == byProbe {
		s.say(j, 0, 0, model.WorkSilent)
		return
	}
	s.say(j, 0, 0, "")
}

func twoChips(s *stage, j *workJob) {
	s.enqueue(j)
	s.streams(j, 0, 0.7, nil)
	s.streams(j, 1, 0.07, nil)
	s.say(j, 0, 0.7, "")
	s.say(j, 1, 0.07, "")
}

// burst: programs as fast as they are taken. libttmon sees all of them; of what
// the probe sees the rest is counted as lost.
func burst(s *stage, j *workJob) {
	const n = 1_000_000
	for range n {
		j.feed.Chips[0].Program(1, 30, 70)
	}
	if err := j.feed.Chips[0].Flush(); err != nil {
		s.Fatal(err)
	}
	var got uint64
	s.until("the burst is counted", func() bool {
		chips := processOf(s.daemonSnapshot(j.d), j.PID).Work.Chips
		if len(chips) == 0 {
			return false
		}
		before := got
		got = chips[0].Work.ProgramSum.V
		return got == n || j.witness == byProbe && got > 0 && got == before
	})
	v := right
	if got != n {
		v = bounded
	}
	if got > n || got != n && j.witness == byLibrary {
		v = wrong
	}
	s.enter(row{what: "programs of a burst", truth: fmt.Sprint(n), said: fmt.Sprint(got), verdict: v})
}

func killedInStream(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	x.end()
	s.kill(j.Job)
	j.begun = time.Now()
	s.say(j, 0, 0, "") // no process has the device open
}

// hostWaits: nothing completes while the host waits: the chip may be busy.
func hostWaits(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	j.feed.Chips[0].Hold(true)
	s.Cleanup(func() { j.feed.Chips[0].Hold(false) })
	s.do(j.Job, ttnn.Step{"do": "finish", "later": true})
	x.end()
	j.begun = time.Now()
	snap := s.say(j, 0, 1, model.WorkSilent)
	if j.witness != byProbe {
		s.fact("the host waits for", string(model.WaitsForFinish), string(processOf(snap, j.PID).Work.Host.WaitingFor))
	}
}

// idleAfter: when the host has waited for all of it, nothing runs.
func idleAfter(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	x.end()
	s.do(j.Job, ttnn.Step{"do": "finish"})
	if j.witness == byProbe {
		s.untilCause(j, model.WorkSilent)
		return
	}
	s.until("it is idle", func() bool {
		w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		return w.Busy.Known() && w.Busy.V == 0 && w.Bound == model.Exact
	})
	s.fact("busy", "0 %, exact", "0 %, exact")
}

// untilCause waits for the reason why a figure is missing, or not exact.
func (s *stage) untilCause(j *workJob, want model.WorkCause) (w *model.Work) {
	s.Helper()
	s.until(fmt.Sprintf("the reason is %q", want), func() bool {
		w = &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		return w.Cause == want
	})
	s.fact("reason", string(want), string(w.Cause))
	return w
}

func withoutID(s *stage, j *workJob) {
	s.enqueue(j)
	c := j.feed.Chips[0]
	s.streams(j, 0, 0.5, func() { c.Record(0, 5, 6) })
	s.say(j, 0, 1, model.WorkUnprofiled) // what they took is not known
}

func onlySyncs(s *stage, j *workJob) {
	for range 100 {
		j.feed.Chips[0].Sync()
	}
	nothingRan(s, j)
}

func divided(s *stage, j *workJob) {
	s.enqueue(j)
	s.do(j.Job, ttnn.Step{"do": "divide", "parts": 2})
	s.streams(j, 0, 0.5, nil)
	s.say(j, 0, 1, model.WorkSubDevices)
}

// besideAnother: what runs on a second command queue is not reported, and may run
// at the same time as what is, or not.
func besideAnother(s *stage, j *workJob) {
	// In mock mode a queue never gives the device up to another one. What the first
	// one runs is made up anyway.
	s.do(j.Job, alloc("a", "dram", 65536), ttnn.Step{"do": "add", "name": "c", "of": []string{"a", "a"}, "queue": 1})
	s.streams(j, 0, 0.5, nil)
	snap := s.say(j, 0, 1, model.WorkQueues)
	w := &snap.Devices[0].Chips[0].Work
	s.fact("busy of the first queue", "50 %, at least", fmt.Sprintf("%.0f %%, %s", 100*w.Busy.V, strings.ReplaceAll(w.Bound.String(), "_", " ")))
}

// longProgram: what runs has no record until it ends, and is not called idle.
func longProgram(s *stage, j *workJob) {
	s.enqueue(j)
	c := j.feed.Chips[0]
	c.Program(1, 0, 1000)
	s.untilCause(j, model.WorkSilent)
	begun := time.Now()
	for time.Since(begun) < 3*time.Second {
		w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		if w.Busy.Known() {
			v, why := judgeWork(1, w)
			s.enter(row{what: "busy, while it runs", truth: percent(1), said: saidOf(w), verdict: v, why: why})
		}
	}
	c.Program(1, 0, uint64(time.Since(begun)))
	w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
	v, why := judgeWork(1, w)
	s.enter(row{what: "busy, when it has ended", truth: "at most 100 %", said: saidOf(w), verdict: v, why: why})
}

// forgedPages: a program that reports nonsense is never more than all the time
// busy, and its nonsense is not called exact.
func forgedPages(s *stage, j *workJob) {
	c := j.feed.Chips[0]
	s.enqueue(j)
	var forge atomic.Bool
	s.streams(j, 0, 0.5, func() {
		if forge.CompareAndSwap(true, false) {
			c.Record(1, c.Clock, c.Clock+uint64(time.Hour)) // longer than there was time
		}
	})
	s.say(j, 0, 0.5, "")
	forge.Store(true)
	w := s.untilCause(j, model.WorkTooMuch)
	v, why := judgeWork(1, w)
	s.enter(row{what: "busy of an hour in a second", truth: "at most 100 %", said: saidOf(w), verdict: v, why: why})
	snap := s.daemonSnapshot(j.d)
	if total := snap.Devices[0].Work.BusyTime; total.Known() && total.V > uint64(time.Minute*10) {
		s.fact("busy time in all", "no more than has passed", time.Duration(total.V).String())
	}
	s.do(j.Job, ttnn.Step{"do": "ping"})
}
