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
	Min, Max float32 // only if it is Known
	Last     float32
	// Bound is the worst among the samples: how any figure of the bucket is to
	// be read.
	Bound model.Bound
}

// State says what is known of a bucket.
type State uint8

// Bucket states.
const (
	Empty   State = iota // before the first sample, or after the last
	Sampled              // at least one known value fell into the step
	Held                 // none did, and the last one before still holds
	Gap                  // the value was not known
	Away                 // nothing was: no sample of anything was taken
)

// Known reports whether the bucket has a value.
func (b *Bucket) Known() bool { return b.State == Sampled || b.State == Held }

// Reader is what a chart asks. It never waits: an implementation that has to
// fetch (a daemon's history) answers with what it has.
type Reader interface {
	// Range fills dst: bucket i covers the time from+i*step up to the next.
	Range(dst []Bucket, k Key, from time.Time, step time.Duration)
	// Span is the time of the oldest and newest sample; zero when there is none.
	Span() (oldest, newest time.Time)
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
	if b.State != Sampled {
		*b = Bucket{State: Gap}
	}
}

// held is the bucket of a step without a sample, after another.
func (b *Bucket) held() Bucket {
	if !b.Known() {
		return Bucket{State: Gap}
	}
	return Bucket{State: Held, Min: b.Last, Max: b.Last, Last: b.Last, Bound: b.Bound}
}
