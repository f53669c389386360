package collect

import (
	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/source/shm"
)

// Learned is what a Collector found out and the next one could not: it was
// there to see it. It travels as JSON from one ttmond to the next.
type Learned struct {
	Chips []board.KnownChip `json:"chips,omitempty"`
	Slots []shm.Adoption    `json:"slots,omitempty"`
	// Conditions are those that hold, and since when.
	Conditions []assess.Course `json:"conditions,omitempty"`
	Heartbeats []kmd.Heartbeat `json:"heartbeats,omitempty"`
}

// Learned is what a successor should know.
func (c *Collector) Learned() *Learned {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Learned{Chips: c.chips.resolver.Export(), Slots: c.regions.Adoptions(), Conditions: c.judge.Courses(), Heartbeats: c.driver.Heartbeats()}
}

// Restore takes over what another Collector found out. It is called before the
// first Collect.
func (c *Collector) Restore(l *Learned) {
	c.chips.resolver.Restore(l.Chips)
	c.regions.Restore(l.Slots)
	c.judge.Restore(l.Conditions)
	c.driver.Restore(l.Heartbeats)
}
