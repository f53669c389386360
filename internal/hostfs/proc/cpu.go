package proc

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// cpuMeter turns CPU times into a share of one core between two calls.
type cpuMeter struct {
	ticks uint64
	at    time.Time
	share model.Reading[float64]
}

// minWindow keeps the share meaningful: times come in ticks of 10 ms, so over
// a shorter window a single tick would be worth more than 10 %.
const minWindow = 100 * time.Millisecond

// update adds a sample and returns the share in percent. Within minWindow it
// returns the last share again.
func (m *cpuMeter) update(ticks uint64, at time.Time) model.Reading[float64] {
	switch elapsed := at.Sub(m.at); {
	case m.at.IsZero():
		m.share = model.Missing[float64](model.Pending, "needs two samples")
	case elapsed < minWindow:
		return m.share
	case ticks < m.ticks:
		// Times of exited threads are added a moment after the threads
		// are gone; never show that as a huge share.
		m.share = model.Missing[float64](model.Pending, "the CPU time went backwards; needs a new sample")
	default:
		m.share = model.Value(float64(ticks-m.ticks) / ticksPerSecond / elapsed.Seconds() * 100)
	}
	m.ticks, m.at = ticks, at
	return m.share
}
