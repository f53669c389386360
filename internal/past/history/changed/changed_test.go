package changed

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_800_000_000, 0)

// of is a series with a sample a second: of the window's 300 s before, then of its
// 75 s.
func of(counter bool, value func(i int) float64) (*Series, Window) {
	w := WindowOf(start, start.Add(75*time.Second))
	s := &Series{Counter: counter}
	for i := range 375 {
		s.Add(w, w.Before.Add(time.Duration(i)*time.Second), value(i))
	}
	return s, w
}

func TestScore(t *testing.T) {
	nan := math.NaN()
	during := func(a, b float64) func(int) float64 {
		return func(i int) float64 {
			if i < 300 {
				return a
			}
			return b
		}
	}
	noise := func(i int) float64 { return float64(i%2*2 - 1) } // spread 1
	for _, c := range []struct {
		name      string
		counter   bool
		value     func(int) float64
		kind      Kind
		low, high float64
	}{
		{"it stays", false, during(50, 50), Moved, 0, 0},
		{"always 0", false, during(0, 0), Moved, 0, 0},
		{"a condition begins to hold", false, during(0, 1), Moved, Most, Most},
		{"a steady clock drops by a quarter", false, during(1000, 750), Moved, 25, 25},
		{"a steady value moves by a trifle", false, during(1000, 1001), Moved, 0.05, 0.15},
		{"noise around 50 moves by 10", false, func(i int) float64 { return during(50, 60)(i) + noise(i) }, Moved, 9, 11},
		{"noise around 0", false, noise, Moved, 0, 0.1},
		{"it begins", false, during(nan, 3), Began, Most, Most},
		{"it stops", false, during(3, nan), Stopped, Most, Most},
		{"it is never known", false, during(nan, nan), Moved, 0, 0},
		{"a counter at the same pace", true, func(i int) float64 { return float64(i) * 7 }, Moved, 0, 0.001},
		{"a counter that starts over", true, func(i int) float64 { return float64(i%200) * 7 }, Moved, 0, 0.001},
		{"a counter that stands still", true, func(i int) float64 { return float64(min(i, 299)) * 7 }, Moved, 99.9, Most},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := of(c.counter, c.value)
			kind, score, before, after := s.Result()
			if kind != c.kind || score < c.low || score > c.high {
				t.Errorf("%s with %v, want %s from %v to %v\nbefore %+v\nduring %+v", kind, score, c.kind, c.low, c.high, before, after)
			}
		})
	}
}

// Of a series that is kept when it changes one sample before is enough; of others
// it is not known how they vary.
func TestFewSamples(t *testing.T) {
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprint("static ", static), func(t *testing.T) {
			w := WindowOf(start, start.Add(time.Minute))
			s := Series{Static: static}
			s.Add(w, start.Add(-time.Minute), 0)
			s.Add(w, start.Add(time.Second), 1)
			if _, score, _, _ := s.Result(); (score == Most) != static {
				t.Errorf("score %v", score)
			}
		})
	}
}

// Whatever the values: a score is a number from 0 to 100, is the same for a series
// in another unit, and does not depend on what is outside both times.
func TestScoreIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 375, 375).Draw(t, "values")
		per := rapid.SampledFrom([]float64{1, 1024, 1e-3}).Draw(t, "per")
		a, w := of(false, func(i int) float64 { return values[i] })
		b, _ := of(false, func(i int) float64 { return values[i] * per })
		b.Add(w, w.Before.Add(-time.Second), 1e9)
		b.Add(w, w.To.Add(time.Second), 1e9)
		_, x, before, _ := a.Result()
		_, y, _, _ := b.Result()
		if !(x >= 0 && x <= Most) || math.Abs(x-y) > 1e-6*max(x, 1) {
			t.Fatalf("scores %v and %v", x, y)
		}
		if before.Samples != 300 || before.Min > before.Mean || before.Max < before.Mean || math.IsNaN(before.Spread) {
			t.Fatalf("before: %+v", before)
		}
	})
}

func TestRank(t *testing.T) {
	one := 1
	a := Answer{Changes: []Change{
		{Metric: "little", Score: 1.9},
		{Metric: "less", Kind: Moved, Score: 4},
		{Metric: "some", Kind: Moved, Score: 5},
		{Metric: "new", Kind: Began, Score: Most},
		{Metric: "much", Kind: Moved, Score: Most, Device: &one, Before: Part{Mean: 10}, During: Part{Mean: 20}},
		{Metric: "all", Kind: Moved, Score: Most, Before: Part{Mean: 0}, During: Part{Mean: 20}},
		{Metric: "hung", Kind: Moved, Score: Most, Condition: true, Before: Part{Mean: 0.1}, During: Part{Mean: 0.5}},
	}}
	for i := range 30 { // a device is lost: its series crowd nothing out
		a.Changes = append(a.Changes, Change{Metric: fmt.Sprint("gone ", i), Kind: Stopped, Score: Most})
	}
	a.Rank(4)
	got := ""
	for _, c := range a.Changes {
		got += c.Metric + " "
	}
	if got != "hung all much some " || a.More != 1 {
		t.Errorf("%sand %d more", got, a.More)
	}
	if a.Began.Count != 1 || a.Began.Series[0].Metric != "new" || a.Stopped.Count != 30 || len(a.Stopped.Series) != maxApart {
		t.Errorf("apart: %d began, %d stopped, %d listed", a.Began.Count, a.Stopped.Count, len(a.Stopped.Series))
	}
}
