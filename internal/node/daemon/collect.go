package daemon

import (
	"fmt"
	"time"
)

// Collect is how often a daemon makes snapshots, and how long it waits for what they
// are made of.
type Collect struct {
	Interval Duration `toml:"interval" comment:"Time between two snapshots."`
	Timeout  Duration `toml:"timeout" comment:"How long devices, and processes, may take to answer; more where everything is slow."`
}

// NewCollect makes a snapshot a second.
func NewCollect(timeout time.Duration) Collect {
	return Collect{Interval: Duration{time.Second}, Timeout: Duration{timeout}}
}

// Check finds mistakes.
func (c *Collect) Check() error {
	switch {
	case c.Interval.Duration < 100*time.Millisecond || c.Interval.Duration > time.Hour:
		return fmt.Errorf("collect.interval: %v is not between 100ms and 1h", c.Interval)
	case c.Timeout.Duration < 10*time.Millisecond || c.Timeout.Duration > time.Minute:
		return fmt.Errorf("collect.timeout: %v is not between 10ms and 1m", c.Timeout)
	}
	return nil
}
