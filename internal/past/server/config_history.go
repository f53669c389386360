package server

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// History is what is kept, and for how long.
type History struct {
	Enabled   bool            `toml:"enabled" comment:"Keep history, events and alerts below state_dir."`
	Fine      daemon.Duration `toml:"fine" comment:"How long every sample is kept."`
	Coarse    daemon.Duration `toml:"coarse" comment:"How long a sample every 15 s is kept."`
	Snapshots daemon.Duration `toml:"snapshots" comment:"How long whole snapshots are kept, one a second, to look back in time."`
	Runs      daemon.Duration `toml:"runs" comment:"How long the account of a program that used devices is kept (ttmon runs); all take a sixteenth of max_mb at most."`
	MaxMB     int             `toml:"max_mb" comment:"The most that history takes on the disk, in MB; snapshots and events take a quarter of it."`
	MaxSeries int             `toml:"max_series" comment:"Series kept at most."`
}

func defaultHistory() History {
	return History{
		Enabled: true, Fine: daemon.Duration{Duration: 3 * time.Hour}, Coarse: daemon.Duration{Duration: 30 * 24 * time.Hour},
		Snapshots: daemon.Duration{Duration: 24 * time.Hour}, Runs: daemon.Duration{Duration: 90 * 24 * time.Hour}, MaxMB: 1024, MaxSeries: 20_000,
	}
}

func (c *History) check() error {
	for what, d := range map[string]daemon.Duration{"history.fine": c.Fine, "history.coarse": c.Coarse, "history.snapshots": c.Snapshots, "history.runs": c.Runs} {
		if err := span(what, d); err != nil {
			return err
		}
	}
	if c.Fine.Duration < time.Hour {
		return fmt.Errorf("history.fine: %v is less than an hour", c.Fine)
	}
	if c.MaxMB < 64 {
		return fmt.Errorf("history.max_mb: %d is less than 64", c.MaxMB)
	}
	if c.MaxSeries < 100 || c.MaxSeries > 1_000_000 {
		return fmt.Errorf("history.max_series: %d is not between 100 and 1000000", c.MaxSeries)
	}
	return nil
}
