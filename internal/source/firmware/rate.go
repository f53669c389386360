package firmware

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// rates are what takes two samples.
type rates struct {
	at        time.Time
	corrected uint64
	queues    []chipread.Queue

	correctedRate model.Reading[float64]
	busy          model.Reading[float64]
}

// next compares a sample with the one before. Counters that went backwards start
// over.
func (r *rates) next(t *model.Telemetry, a *chipread.Response, now time.Time) {
	pending := model.Missing[float64](model.Pending, "it takes a second sample")
	r.correctedRate, r.busy = pending, pending
	if n, ok := t.Corrected.Get(); !ok {
		r.correctedRate = model.As[float64](t.Corrected)
	} else {
		if hours := now.Sub(r.at).Hours(); !r.at.IsZero() && hours > 0 && n >= r.corrected {
			r.correctedRate = model.Value(float64(n-r.corrected) / hours)
		}
		r.corrected, r.at = n, now
	}
	if a.Dispatch == nil {
		r.queues = nil
		return
	}
	if busy, ok := utilisation(r.queues, a.Dispatch.Queues); ok {
		r.busy = model.Value(busy)
	}
	r.queues = a.Dispatch.Queues
}

// utilisation is the share of time in which a program ran: that of the busiest
// queue.
func utilisation(before, after []chipread.Queue) (busiest float64, ok bool) {
	if len(before) != len(after) {
		return 0, false
	}
	for i := range after {
		if after[i].Now <= before[i].Now || after[i].Busy < before[i].Busy {
			return 0, false // another program, or a torn read
		}
		share := float64(after[i].Busy-before[i].Busy) / float64(after[i].Now-before[i].Now)
		busiest, ok = max(busiest, min(share, 1)), true
	}
	return busiest, ok
}
