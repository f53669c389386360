package driver

import (
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
)

// clock is the time of the simulated host. Heartbeats follow Now.Beat; physics
// follow it at a distance while the clock is not frozen.
type clock struct {
	mu      sync.Mutex
	start   time.Time
	skipped time.Duration // added by advance
	frozen  bool
	stopped time.Duration // physics time while frozen
	lag     time.Duration // of physics behind beat while not
}

func (c *clock) now() chip.Now {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *clock) read() chip.Now {
	n := chip.Now{Beat: time.Since(c.start) + c.skipped, Physics: c.stopped}
	if !c.frozen {
		n.Physics = n.Beat - c.lag
	}
	return n
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped += by
	c.stopped += by // means nothing unless frozen
}

func (c *clock) freeze(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.read()
	if frozen == c.frozen {
		return
	}
	c.stopped, c.lag, c.frozen = now.Physics, now.Beat-now.Physics, frozen
}

func (c *clock) isFrozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}
