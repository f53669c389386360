package history

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model"
)

var t0 = time.Unix(1_800_000_000, 0)

func sampled(v float32) Bucket { return Bucket{State: Sampled, Min: v, Max: v, Last: v} }

func TestRange(t *testing.T) {
	s := New()
	k, other := Key{Metric: "power_w", Device: "0000:01:00.0"}, Key{Metric: "power_w", Device: "0000:02:00.0"}
	for i, v := range []float64{10, 11, math.NaN(), 13, 14} {
		s.Begin(t0.Add(time.Duration(i) * time.Second))
		s.Put(k, v)
	}
	s.Put(other, 7)
	for _, c := range []struct {
		name string
		key  Key
		from time.Duration
		step time.Duration
		n    int
		want []Bucket
	}{
		{"one each", k, 0, time.Second, 5, []Bucket{sampled(10), sampled(11), {State: Gap}, sampled(13), sampled(14)}},
		{"finer than the samples", k, 0, 500 * time.Millisecond, 4, []Bucket{sampled(10), held(10), sampled(11), held(11)}},
		{"two a bucket", k, 0, 2 * time.Second, 3, []Bucket{{State: Sampled, Min: 10, Max: 11, Last: 11}, sampled(13), sampled(14)}},
		{"beyond both ends", k, -2 * time.Second, 4 * time.Second, 3, []Bucket{{State: Sampled, Min: 10, Max: 11, Last: 11}, {State: Sampled, Min: 13, Max: 14, Last: 14}, {}}},
		{"late series", other, 3 * time.Second, time.Second, 2, []Bucket{{State: Gap}, sampled(7)}},
		{"no such series", Key{Metric: "x"}, 0, time.Second, 2, []Bucket{{}, {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]Bucket, c.n)
			s.Range(got, c.key, t0.Add(c.from), c.step)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	oldest, newest := s.Span()
	if !oldest.Equal(t0) || !newest.Equal(t0.Add(4*time.Second)) {
		t.Errorf("Span = %v %v", oldest, newest)
	}
}

// A doubt is kept with its sample, and does not get lost in coarser tiers nor
// after the rings have wrapped around.
func TestBounds(t *testing.T) {
	k := Key{Metric: "dram"}
	for _, first := range []int{0, 7} { // rows before the series begins
		s := New()
		rows := first + 2*tierRows + 30
		bound := func(i int) model.Bound {
			switch {
			case i%504 == 3:
				return model.Unsure
			case i%100 == 9:
				return model.AtLeast
			}
			return model.Exact
		}
		for i := range rows {
			s.Begin(t0.Add(time.Duration(i) * time.Second))
			if i >= first {
				s.PutBound(k, float64(i), bound(i))
			}
		}
		begin := rows - tierRows
		fine := make([]Bucket, tierRows)
		s.Range(fine, k, t0.Add(time.Duration(begin)*time.Second), time.Second)
		for i, b := range fine {
			if b.Bound != bound(begin+i) || b.Last != float32(begin+i) {
				t.Fatalf("row %d is %+v, its bound is %v", begin+i, b, bound(begin+i))
			}
		}
		begin = (first/504 + 1) * 504
		coarse := make([]Bucket, 6)
		s.Range(coarse, k, t0.Add(time.Duration(begin)*time.Second), 504*time.Second)
		for i, b := range coarse {
			if b.Bound != model.Unsure {
				t.Errorf("coarse bucket %d is %+v: the doubt is lost", i, b)
			}
		}
	}
}

func TestEmptyStore(t *testing.T) {
	s := New()
	if a, b := s.Span(); !a.IsZero() || !b.IsZero() {
		t.Error("an empty store has a span")
	}
	dst := []Bucket{sampled(1)}
	s.Range(dst, Key{}, t0, time.Second)
	if dst[0].State != Empty {
		t.Error("Range left old buckets in dst")
	}
}

func TestClockSetBack(t *testing.T) {
	s := New()
	k := Key{Metric: "m"}
	for i, at := range []int{0, 1, -3600, 2} {
		s.Begin(t0.Add(time.Duration(at) * time.Second))
		s.Put(k, float64(i))
	}
	got := make([]Bucket, 3)
	s.Range(got, k, t0, time.Second)
	want := []Bucket{sampled(0), {State: Sampled, Min: 1, Max: 2, Last: 2}, sampled(3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A single spike must stay visible at every zoom for as long as anything of
// its time is kept.
func TestPeakSurvivesZoomingOut(t *testing.T) {
	s := New()
	k := Key{Metric: "m"}
	const spike = 777
	rows := tierRows*fold + 5000
	for i := range rows {
		s.Begin(t0.Add(time.Duration(i) * time.Second))
		v := float64(i % 5)
		if i == spike {
			v = 1000
		}
		s.Put(k, v)
	}
	for _, step := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
		dst := make([]Bucket, int(time.Duration(rows)*time.Second/step)+1)
		s.Range(dst, k, t0, step)
		if at := int(spike * time.Second / step); dst[at].Max != 1000 || dst[at].Min != 0 {
			t.Errorf("step %v: bucket %d is %+v, the spike is lost", step, at, dst[at])
		}
	}
}

func TestSeriesAreForgotten(t *testing.T) {
	s := New()
	s.Begin(t0)
	s.Put(Key{Metric: "gone"}, 1)
	live := Key{Metric: "live"}
	for i := range tierRows * fold * (fold + 1) {
		s.Begin(t0.Add(time.Duration(i) * time.Second))
		s.Put(live, 1)
	}
	if _, ok := s.series[Key{Metric: "gone"}]; ok {
		t.Error("a series outlives its samples")
	}
	if _, ok := s.series[live]; !ok {
		t.Error("a living series was forgotten")
	}
}

// Against the obvious implementation: whatever was put, at whatever spacing,
// a range over recent rows has the right minimum, maximum and gaps.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sample struct {
			ms int64
			v  float64
		}
		var all []sample
		s := New()
		k := Key{Metric: "m"}
		ms := t0.UnixMilli()
		start := rapid.IntRange(0, 40).Draw(t, "first row")
		n := rapid.IntRange(1, tierRows).Draw(t, "rows")
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range start + n {
			seed = seed*1664525 + 1013904223
			ms += int64(seed>>16) % 1500
			s.Begin(time.UnixMilli(ms))
			if i < start {
				continue
			}
			v := float64(seed >> 24)
			if v < 60 && i > start { // a series begins with its first value
				v = math.NaN()
			}
			s.Put(k, v)
			all = append(all, sample{ms, v})
		}
		step := time.Duration(rapid.IntRange(1, 900).Draw(t, "step ms")) * time.Millisecond
		from := time.UnixMilli(ms - int64(rapid.IntRange(0, 200_000).Draw(t, "back ms")))
		got := make([]Bucket, rapid.IntRange(1, 400).Draw(t, "buckets"))
		s.Range(got, k, from, step)
		want := make([]Bucket, len(got))
		for _, x := range all {
			d := x.ms - from.UnixMilli()
			if i := d / step.Milliseconds(); d >= 0 && i < int64(len(want)) {
				if math.IsNaN(x.v) {
					want[i].miss()
				} else {
					want[i].add(sampled(float32(x.v)))
				}
			}
		}
		for i := range want { // what is between samples, and before the series began, is another test's
			if want[i].State == Empty && got[i].State != Sampled {
				want[i] = got[i]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkPut640Series(b *testing.B) {
	s := New()
	keys := make([]Key, 640)
	for i := range keys {
		keys[i] = Key{Metric: "m", Chip: i}
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Begin(t0.Add(time.Duration(i) * time.Second))
		for _, k := range keys {
			s.Put(k, 1)
		}
		i++
	}
}

func BenchmarkRange400Buckets(b *testing.B) {
	s := New()
	k := Key{Metric: "m"}
	for i := range 4000 {
		s.Begin(t0.Add(time.Duration(i) * time.Second))
		s.Put(k, float64(i))
	}
	dst := make([]Bucket, 400)
	b.ReportAllocs()
	for b.Loop() {
		s.Range(dst, k, t0.Add(3400*time.Second), 1500*time.Millisecond)
	}
}
