package collect

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestBusyBetweenRecords: a program that runs while a sample is taken has no
// record yet. What is called exact is right whatever it does, and what is called
// at least is never too much.
func TestBusyBetweenRecords(t *testing.T) {
	const second, hour = time.Second, time.Hour
	type sample struct {
		busy, end time.Duration // by the chip's clock
		quiet     time.Duration // since the last record
		programs  uint64
	}
	for _, c := range []struct {
		name          string
		before, after sample
		was, settled  bool // nothing ran, and it is certain
		ratio, window float64
		bound         model.Bound
		cause         model.WorkCause
	}{
		{
			"a stream of 70 %, made from record to record",
			sample{hour, hour, 4 * time.Millisecond, 10},
			sample{hour + 700*time.Millisecond, hour + second, 4 * time.Millisecond, 710},
			false, false, 0.7, 1, model.Exact, "",
		},
		{
			"the later record is older: its window is shorter",
			sample{hour, hour, 0, 10},
			sample{hour + 630*time.Millisecond, hour + 900*time.Millisecond, 100 * time.Millisecond, 710},
			false, false, 0.7, 0.9, model.Exact, "",
		},
		{
			"silent for longer than a quarter of the window",
			sample{hour, hour, 0, 10},
			sample{hour + 350*time.Millisecond, hour + 500*time.Millisecond, 500 * time.Millisecond, 20},
			false, false, 0.32, 1, model.AtLeast, model.WorkUnreported,
		},
		{
			"the same, and the host has waited for all",
			sample{hour, hour, 0, 10},
			sample{hour + 350*time.Millisecond, hour + 500*time.Millisecond, 500 * time.Millisecond, 20},
			false, true, 0.35, 1, model.Exact, "",
		},
		{
			"a program of 5 s ended in the middle: most of it ran before",
			sample{hour, hour, 5 * second, 10},
			sample{hour + 5*second, hour + 5500*time.Millisecond, 500 * time.Millisecond, 11},
			false, false, 0, 0, model.Exact, model.WorkUnreported,
		},
		{
			"it began right after the last one, so it ran throughout",
			sample{hour, hour, 5 * second, 10},
			sample{hour + 5500*time.Millisecond, hour + 5500*time.Millisecond, 500 * time.Millisecond, 11},
			false, false, 0.37, 1, model.AtLeast, model.WorkUnreported,
		},
		{
			"the first program after an idle hour that is known to be one",
			sample{hour, hour, hour, 10},
			sample{hour + 300*time.Millisecond, 2*hour + second, 0, 11},
			true, false, 0.3, 1, model.Exact, "",
		},
		{
			"after an idle hour, and another one runs: the hour is no part of the window",
			sample{hour, hour, hour, 10},
			sample{hour + 450*time.Millisecond, 2*hour + 900*time.Millisecond, 100 * time.Millisecond, 11},
			true, false, 0.5, 0.9, model.Exact, "",
		},
		{
			"after an idle hour, and silent for longer than a quarter of the window",
			sample{hour, hour, hour, 10},
			sample{hour + 450*time.Millisecond, 2*hour + 500*time.Millisecond, 500 * time.Millisecond, 11},
			true, false, 0.45, 1, model.AtLeast, model.WorkUnreported,
		},
		{
			"a clock that does not fit the host's is not used",
			sample{hour, hour, 0, 10},
			sample{hour + 700*time.Millisecond, 3 * hour, 4 * time.Millisecond, 710},
			false, false, 0.7, 1, model.Unsure, model.WorkUnreported,
		},
		{
			"no clock",
			sample{hour, 0, 0, 10},
			sample{hour + 700*time.Millisecond, 0, 4 * time.Millisecond, 710},
			false, false, 0.7, 1, model.Unsure, model.WorkUnreported,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := func(s sample, now time.Time) *claim.Work {
				return &claim.Work{At: now, Queues: 1, Lossless: true, Busy: s.busy, LastEnd: s.end, LastRecord: now.Add(-s.quiet), Programs: s.programs, Since: workStart.Add(-9 * hour)}
			}
			w := busy(at(c.after, workStart.Add(second)), &workSample{Work: *at(c.before, workStart), settled: c.was}, c.settled)
			if math.Abs(w.Busy.V-c.ratio) > 1e-9 || w.Bound != c.bound || w.Cause != c.cause || c.window > 0 && math.Abs(w.Window-c.window) > 1e-9 {
				t.Errorf("%+v, want %v %v over %v s: %q", w, c.bound, c.ratio, c.window, c.cause)
			}
		})
	}
}

// TestUnseenBetweenRecords: a figure from record to record begins before the
// sample, and so does what it has to answer for.
func TestUnseenBetweenRecords(t *testing.T) {
	for _, c := range []struct {
		name  string
		lose  func(*claim.Work)
		cause model.WorkCause
	}{
		{"lost", func(w *claim.Work) { w.Lost++ }, model.WorkRecordsLost},
		{"no id", func(w *claim.Work) { w.Unprofiled++ }, model.WorkUnprofiled},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before *workSample
			w := claim.Work{Lossless: true, Queues: 1, Since: workStart.Add(-time.Hour)}
			for i, want := range []model.WorkCause{model.WorkFirstSample, "", c.cause, c.cause, ""} {
				w.At = workStart.Add(time.Duration(i) * time.Second)
				w.Busy, w.Programs = w.Busy+700*time.Millisecond, w.Programs+700
				w.LastEnd, w.LastRecord = time.Hour+time.Duration(i)*time.Second, w.At.Add(-4*time.Millisecond)
				if i == 2 {
					c.lose(&w) // before its last record, or after
				}
				if got := busy(&w, before, false); got.Cause != want {
					t.Errorf("sample %d: %v %v %q, want %q", i, got.Bound, got.Busy, got.Cause, want)
				}
				before = &workSample{Work: w, atRecord: unseenAtRecord(&w, before)}
			}
		})
	}
}

// TestSettled: that the host has waited for its work says something of a chip
// only where the chip was ever heard, or nothing was enqueued.
func TestSettled(t *testing.T) {
	waited := &model.HostWork{Enqueued: 3, LastEnqueue: workStart, LastFinish: workStart.Add(time.Second)}
	for _, c := range []struct {
		name string
		chip claim.Work
		host *model.HostWork
		want bool
	}{
		{"a chip that reported", claim.Work{Programs: 1}, waited, true},
		{"a chip whose programs have no id", claim.Work{Unprofiled: 1}, waited, true},
		{"a chip that was never heard", claim.Work{}, waited, false},
		{"nothing was enqueued", claim.Work{}, &model.HostWork{}, true},
		{"nothing was seen to be enqueued, and something ran", claim.Work{Programs: 1}, &model.HostWork{}, false},
		{"it has just waited: the last record may come yet", claim.Work{Programs: 1, At: workStart.Add(time.Second + time.Millisecond)}, waited, false},
		{"no thread waited", claim.Work{Programs: 1}, &model.HostWork{Enqueued: 1, LastEnqueue: workStart}, false},
		{"a thread waits", claim.Work{Programs: 1}, &model.HostWork{WaitingSince: workStart}, false},
		{"the host is not watched", claim.Work{Programs: 1}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.chip.At.IsZero() {
				c.chip.At = workStart.Add(time.Minute)
			}
			if got := isSettled(&c.chip, c.host); got != c.want {
				t.Error(got)
			}
		})
	}
}

// TestBusyBoundOnBusyHost: on a busy host records come late, by more at one sample
// than at the next. No figure that is called at least may be above what ran in its
// window, and no exact one may differ from what ran between the records.
func TestBusyBoundOnBusyHost(t *testing.T) {
	bounds := map[model.Bound]int{}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 18))
		load := 0.2 + 0.75*r.Float64()
		long := time.Duration(1+r.IntN([]int{400, 3000}[seed%2])) * time.Millisecond // of a program, at most
		type span struct{ start, end, arrives time.Duration }
		var ran []span
		arrives := time.Duration(0)
		for at := time.Duration(0); at < 100*time.Second; {
			took := time.Duration(r.Int64N(int64(long))) + time.Microsecond
			delay := time.Duration(r.ExpFloat64() * float64(2*time.Millisecond))
			if r.IntN(4) == 0 { // the receiver's thread did not run
				delay = time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			}
			arrives = max(arrives, at+took+delay) // records keep their order
			ran = append(ran, span{at, at + took, arrives})
			at += took + time.Duration(float64(took)*(1-load)/load)
		}
		between := func(from, to time.Duration) (sum time.Duration) {
			for _, x := range ran {
				sum += max(0, min(x.end, to)-max(x.start, from))
			}
			return sum
		}
		const clock = time.Hour // what the chip's clock was at the start
		var before *workSample
		for at := time.Second; at < 90*time.Second; at += time.Second {
			w := claim.Work{At: workStart.Add(at), Queues: 1, Lossless: true, Since: workStart}
			for _, x := range ran {
				if x.arrives <= at {
					w.Busy, w.Programs = w.Busy+x.end-x.start, w.Programs+1
					w.LastEnd, w.LastRecord = clock+x.end, workStart.Add(x.arrives)
				}
			}
			got := busy(&w, before, false)
			if before != nil && got.Busy.Known() {
				bounds[got.Bound]++
				window := time.Duration(got.Window * float64(time.Second))
				switch truth := between(at-window, at).Seconds() / got.Window; {
				case got.Bound == model.AtLeast && got.Busy.V > truth+0.002:
					t.Errorf("seed %d, at %v: ≥%.3f, truth %.3f", seed, at, got.Busy.V, truth)
				case got.Bound == model.Exact:
					if truth := between(before.LastEnd-clock, w.LastEnd-clock).Seconds() / got.Window; math.Abs(got.Busy.V-truth) > 0.002 {
						t.Errorf("seed %d, at %v: %.3f, truth %.3f", seed, at, got.Busy.V, truth)
					}
				}
			}
			before = &workSample{Work: w, ahead: hostAhead(&w, before)}
		}
	}
	if bounds[model.Exact] < 1000 || bounds[model.AtLeast] < 100 {
		t.Errorf("hardly a figure says something: %v", bounds)
	}
}
