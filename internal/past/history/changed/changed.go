// Package changed ranks series by how much they changed in a stretch of time: "what
// else changed then".
//
// The score of a series is how far its mean in the stretch lies from its mean in
// the time before, counted in its usual variation: the standard deviation before,
// and at least a hundredth of its size, so that a series which never moved does not
// win by a trifle. A score of 18 reads "18 times as far as it usually moves". It
// stops at 100. A series that began or stopped has no such distance: it is listed apart, so
// that a device which is lost does not hide what moved. It is meant to be checked
// by eye and by hand, not to be clever.
//
// The package only counts; internal/past/server reads the history for it.
package changed

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"
)

// The ends of a score.
const (
	Most  = 100.0 // no score is higher
	Least = 2.0   // what moved less has not changed
	// trifle is the part of its size by which a series always may move.
	trifle = 0.01
	// few is how many samples before the stretch make a usual variation.
	few = 3
)

// Bounds of what is compared.
const (
	MaxStretch = 24 * time.Hour
	maxBefore  = 6 * time.Hour
	minBefore  = 5 * time.Minute
	beforeFold = 4
)

// ErrBusy is returned while another question of the kind is answered.
var ErrBusy = errors.New("another comparison is running; try again in a moment")

// Window is the stretch, and the time before it that it is compared with.
type Window struct{ Before, From, To time.Time }

// WindowOf compares a stretch with a time before it that is four times as long: from
// five minutes to six hours.
func WindowOf(from, to time.Time) Window {
	return Window{from.Add(-min(max(beforeFold*to.Sub(from), minBefore), maxBefore)), from, to}
}

// Part is what a series was in one of the two times.
type Part struct {
	Samples  int     `json:"samples"`
	Mean     float64 `json:"mean"` // 0 where there is no sample
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Spread   float64 `json:"spread"` // standard deviation
	sumOfSqr float64
}

func (p *Part) add(v float64) {
	p.Samples++
	if p.Samples == 1 {
		p.Min, p.Max = v, v
	}
	p.Min, p.Max = min(p.Min, v), max(p.Max, v)
	d := v - p.Mean
	p.Mean += d / float64(p.Samples)
	p.sumOfSqr += d * (v - p.Mean)
	p.Spread = math.Sqrt(p.sumOfSqr / float64(p.Samples))
}

// Kind is how a series changed.
type Kind string

// The kinds.
const (
	Moved   Kind = "moved"
	Began   Kind = "began"   // it has no sample before the stretch
	Stopped Kind = "stopped" // it has none in it
)

// Series is one series while its samples are added.
type Series struct {
	// Counter: what counts is by how much it grows in a second.
	Counter bool
	// Static: it is kept when it changes and rarely otherwise, so that one sample
	// stands for a time.
	Static bool

	before, during Part
	lastAt         time.Time
	last           float64
	any            bool
}

// Add takes the next sample in. What is no number is skipped.
func (s *Series) Add(w Window, at time.Time, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || at.Before(w.Before) || at.After(w.To) {
		return
	}
	if s.Counter {
		since, grown, first := at.Sub(s.lastAt).Seconds(), v-s.last, !s.any
		s.lastAt, s.last, s.any = at, v, true
		if first || since <= 0 || grown < 0 { // it began again at zero: how far it came before is unknown
			return
		}
		v = grown / since
	}
	if at.Before(w.From) {
		s.before.add(v)
	} else {
		s.during.add(v)
	}
}

// Result is how a series changed. Score is 0 where that is not known.
func (s *Series) Result() (kind Kind, score float64, before, during Part) {
	kind, before, during = Moved, s.before, s.during
	switch {
	case before.Samples == 0 && during.Samples == 0:
		return kind, 0, before, during
	case before.Samples == 0:
		return Began, Most, before, during
	case during.Samples == 0:
		return Stopped, Most, before, during
	case before.Samples < few && !s.Static:
		return kind, 0, before, during
	}
	far := math.Abs(during.Mean - before.Mean)
	usual := max(before.Spread, trifle*max(math.Abs(before.Mean), math.Abs(during.Mean)))
	if far == 0 || usual == 0 {
		return kind, 0, before, during
	}
	return kind, min(far/usual, Most), before, during
}

// Change is a series that changed.
type Change struct {
	Metric string            `json:"metric"`         // a field of /v1/metrics, or the series' own name
	Title  string            `json:"title"`          // for people
	Unit   string            `json:"unit,omitempty"` // of the figures
	Device *int              `json:"device"`         // null: it is of the host
	BusID  string            `json:"bus_id,omitempty"`
	Labels map[string]string `json:"labels,omitempty"` // the others
	Kind   Kind              `json:"kind"`
	Score  float64           `json:"score"`
	Before Part              `json:"before"`
	During Part              `json:"during"`
	// Condition: the series is a condition of a device, such as hung. Of what moved
	// equally far it comes first: it names the trouble.
	Condition bool `json:"-"`
}

// Answer is what changed on a host in a stretch.
type Answer struct {
	Schema string    `json:"schema"` // ttmon.changed/1
	Since  time.Time `json:"since"`  // the time before the stretch begins here
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Series int       `json:"series"` // how many were compared
	// Partial: there was more to read than is read at once; only these were
	// compared.
	Partial bool `json:"partial,omitempty"`
	// Away: the host was not sampled before the stretch, or in it. Nothing can be
	// compared then.
	Away    bool     `json:"away,omitempty"`
	More    int      `json:"more,omitempty"` // changes that were left out
	Changes []Change `json:"changes"`        // what moved, the largest first
	// Series that became unknown in the stretch, and those that were not known before:
	// how far they moved is not known, so they are not ranked among those that did.
	Stopped Apart `json:"stopped"`
	Began   Apart `json:"began"`
}

// Apart are series that are not ranked.
type Apart struct {
	Count  int      `json:"count"`
	Series []Change `json:"series"` // the first of them
}

// maxApart is how many series are listed apart.
const maxApart = 20

func (a *Apart) add(c Change) {
	if a.Count++; len(a.Series) < maxApart {
		a.Series = append(a.Series, c)
	}
}

// Rank keeps the changes that matter, the largest first, and no more than limit.
// Series that began or stopped are listed apart.
func (a *Answer) Rank(limit int) {
	a.Changes = slices.DeleteFunc(a.Changes, func(c Change) bool { return c.Score < Least })
	slices.SortStableFunc(a.Changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), first(x.Condition, y.Condition), cmp.Compare(y.relative(), x.relative()), cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.device(), y.device()))
	})
	a.Stopped, a.Began = Apart{Series: []Change{}}, Apart{Series: []Change{}}
	a.Changes = slices.DeleteFunc(a.Changes, func(c Change) bool {
		switch c.Kind {
		case Stopped:
			a.Stopped.add(c)
		case Began:
			a.Began.add(c)
		}
		return c.Kind == Stopped || c.Kind == Began
	})
	if n := len(a.Changes) - limit; n > 0 {
		a.Changes, a.More = a.Changes[:limit], n
	}
}

func (c *Change) device() int {
	if c.Device == nil {
		return -1
	}
	return *c.Device
}

// relative is the change as a part of what there was.
func (c *Change) relative() float64 {
	size := max(math.Abs(c.Before.Mean), math.Abs(c.During.Mean))
	if size == 0 {
		return 0
	}
	return math.Abs(c.During.Mean-c.Before.Mean) / size
}

// first orders what has a property before what has not.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}
