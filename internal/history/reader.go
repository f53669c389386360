package history

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Key names a series. It is comparable; unused parts stay zero.
type Key struct {
	Metric string // as in the table of metrics: "power_w"
	Device string // bus id
	Chip   int    // position among the device's chips from 1; 0 is the device as a whole
}

// Bucket is what happened to a series during one step of a chart.
type Bucket struct {
	State    State
	Min, Max float32 // hold only if State is Sampled
	Last     float32
	// Bound is the worst among the samples: how any figure of the bucket is to
	// be read.
	Bound model.Bound
}

// State tells an empty bucket from a missing value.
type State uint8

// Bucket states. Empty lets a chart connect the neighbours, Gap does not.
const (
	Empty   State = iota // no sample fell into the step
	Sampled              // at least one known value did
	Gap                  // samples fell into it, and none was known
)

// Reader is what a chart asks. It never waits: an implementation that has to
// fetch (a daemon's history) answers with what it has.
type Reader interface {
	// Range fills dst: bucket i covers the time from+i*step up to the next.
	Range(dst []Bucket, k Key, from time.Time, step time.Duration)
	// Span is the time of the oldest and newest sample; zero when there is none.
	Span() (oldest, newest time.Time)
	// Spacing is how far apart samples lie at the end of the span.
	Spacing() time.Duration
}

// add merges another known bucket, later in time, into b.
func (b *Bucket) add(x Bucket) {
	if b.State != Sampled {
		*b = x
		return
	}
	b.Min, b.Max, b.Last, b.Bound = min(b.Min, x.Min), max(b.Max, x.Max), x.Last, max(b.Bound, x.Bound)
}

// miss notes a sample without a value.
func (b *Bucket) miss() {
	if b.State == Empty {
		b.State = Gap
	}
}
