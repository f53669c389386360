package budget

import "time"

// Meter is how long a user has kept the daemon busy, less a part of the time
// that has passed since: one in Part.
type Meter struct {
	Part int

	took time.Duration
	at   time.Time
}

// Spent is what counts by now.
func (m Meter) Spent(now time.Time) time.Duration {
	if m.at.IsZero() {
		return 0
	}
	return max(0, m.took-now.Sub(m.at)/time.Duration(m.Part))
}

// Add adds to it.
func (m *Meter) Add(took time.Duration, now time.Time) {
	m.took, m.at = m.Spent(now)+took, now
}
