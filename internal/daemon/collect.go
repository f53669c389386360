package daemon

import (
	"fmt"
	"log/slog"
	"time"
)

// Collect is how often a daemon makes snapshots, and how long it waits for what they
// are made of.
type Collect struct {
	Interval Duration `toml:"interval" comment:"Time between two snapshots."`
	Timeout  Duration `toml:"timeout" comment:"How long devices, and processes, may take to answer; more where everything is slow."`
	// Former is what Timeout was called before it had its name; Check applies it,
	// so that an upgrade needs no edit.
	Former *Duration `toml:"patience,omitempty" json:",omitempty"`

	usual  Duration // the timeout without a file
	former bool
}

// NewCollect makes a snapshot a second.
func NewCollect(timeout time.Duration) Collect {
	return Collect{Interval: Duration{time.Second}, Timeout: Duration{timeout}, usual: Duration{timeout}}
}

// Check finds mistakes, and applies a timeout under its former name unless there is
// one under the new name.
func (c *Collect) Check() error {
	key := "collect.timeout"
	if c.Former != nil {
		if c.former = true; c.Timeout == c.usual {
			c.Timeout, key = *c.Former, "collect.patience"
		}
		c.Former = nil
	}
	switch {
	case c.Interval.Duration < 100*time.Millisecond || c.Interval.Duration > time.Hour:
		return fmt.Errorf("collect.interval: %v is not between 100ms and 1h", c.Interval)
	case c.Timeout.Duration < 10*time.Millisecond || c.Timeout.Duration > time.Minute:
		return fmt.Errorf("%s: %v is not between 10ms and 1m", key, c.Timeout)
	}
	return nil
}

// ReportFormer logs that the file has a setting under its former name.
func (c *Collect) ReportFormer(log *slog.Logger) {
	if c.former {
		log.Warn("config key was renamed; the old name still works", "old", "collect.patience", "new", "collect.timeout")
	}
}
