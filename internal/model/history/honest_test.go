package history

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func held(v float32) Bucket { return Bucket{State: Held, Min: v, Max: v, Last: v} }

// Whatever was sampled when, and at whatever resolution it is asked for: a
// bucket has a value only where one was sampled, or where samples before and
// after it are as close together as samples are there; every sample is in a
// bucket; and no value holds past a sample that was not known.
func TestNothingIsInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.SampledFrom([]int{1, 5, 15}).Draw(t, "interval")
		type row struct {
			at    int // seconds
			known bool
		}
		var rows []row
		at := 0
		for range rapid.IntRange(4, 60).Draw(t, "rows") {
			rows = append(rows, row{at, rapid.IntRange(0, 4).Draw(t, "known") > 0})
			at += interval
			if rapid.IntRange(0, 9).Draw(t, "away") == 0 && len(rows) > 2 {
				at += interval * rapid.IntRange(8, 40).Draw(t, "intervals away")
				// Two rows at least between two absences: one alone is no interval.
				rows = append(rows, row{at, true}, row{at + interval, true})
				at += 2 * interval
			}
		}
		s, k := New(), Key{Metric: "m"}
		for i, r := range rows {
			s.Begin(t0.Add(time.Duration(r.at) * time.Second))
			if r.known || i == 0 {
				rows[i].known = true
				s.Put(k, float64(r.at))
			}
		}
		step := rapid.IntRange(1, 30).Draw(t, "step")
		from := rapid.IntRange(-50, at).Draw(t, "from")
		dst := make([]Bucket, 100)
		s.Range(dst, k, t0.Add(time.Duration(from)*time.Second), time.Duration(step)*time.Second)
		for i := range dst {
			begin, end := from+i*step, from+(i+1)*step
			var inside []row
			before, after := row{at: -1 << 30}, row{at: 1 << 30}
			for _, r := range rows {
				switch {
				case r.at < begin:
					before = r
				case r.at < end:
					inside = append(inside, r)
				case after.at == 1<<30:
					after = r
				}
			}
			sampled := false
			for _, r := range inside {
				sampled = sampled || r.known
			}
			switch state := dst[i].State; {
			case sampled != (state == Sampled):
				t.Fatalf("%d to %d s: state %v, sampled %v", begin, end, state, sampled)
			case state == Held && (!before.known || float32(before.at) != dst[i].Last):
				t.Fatalf("%d to %d s: %v holds, and what was before is %+v", begin, end, dst[i].Last, before)
			case state == Held && after.at == 1<<30:
				t.Fatalf("%d to %d s: a value holds after the last sample", begin, end)
			case state == Held && after.at-before.at > 8*interval:
				t.Fatalf("%d to %d s: a value holds from %d to %d s, at an interval of %d s", begin, end, before.at, after.at, interval)
			case state == Away && after.at-before.at <= 2*interval:
				t.Fatalf("%d to %d s: away between samples at %d and %d s", begin, end, before.at, after.at)
			case state == Empty && before.at >= 0 && after.at < 1<<30:
				t.Fatalf("%d to %d s: nothing is said of it", begin, end)
			}
		}
	})
}

// Samples that are further apart than columns are a step, where the history was
// fetched as where it is live.
func TestSparseSamplesAreSteps(t *testing.T) {
	s, k := New(), Key{Metric: "m"}
	for at := -60; at < 0; at += 5 { // fetched
		s.Begin(t0.Add(time.Duration(at) * time.Second))
		s.Put(k, float64(at))
	}
	for at := range 10 { // live
		s.Begin(t0.Add(time.Duration(at) * time.Second))
		s.Put(k, float64(at))
	}
	dst := make([]Bucket, 70)
	s.Range(dst, k, t0.Add(-time.Minute), time.Second)
	for i := range dst {
		if !dst[i].Known() {
			t.Errorf("nothing is known %d s after the start: %v", i, dst[i].State)
		}
	}
}
