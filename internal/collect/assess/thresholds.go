package assess

import "fmt"

// Thresholds are the values from which on something is a condition. They are
// set once, for all views: [conditions] in ttmond.toml.
type Thresholds struct {
	HotMargin  float64 `toml:"hot_margin_c" comment:"Degrees below its limit from which on a device is hot."`
	SlowClock  float64 `toml:"slow_clock_ratio" comment:"Share of its maximum below which the clock of a used device may be throttled."`
	AtLimit    float64 `toml:"at_limit_ratio" comment:"Share of a limit of power or current that counts as reached."`
	MemoryFull float64 `toml:"memory_full_ratio" comment:"Share of a chip's DRAM in use from which on it is full."`
}

// Default are the thresholds where nothing else is configured.
func Default() Thresholds {
	return Thresholds{HotMargin: 5, SlowClock: 0.97, AtLimit: 0.95, MemoryFull: nearlyFull}
}

// nearlyFull is also where bars of memory change their colour.
const nearlyFull = 0.95

// heatReached is how many degrees below its limit a throttled device is
// concluded to be throttled by heat: the firmware regulates around the limit.
const heatReached = 1

// idleActivity is the estimated activity below which a device does nothing: what
// it draws while idle varies by less than that with its temperature.
const idleActivity = 0.08

// cooled is how many degrees below its threshold a hot device must be before
// it is hot no longer.
const cooled = 2

// Check says what is wrong with thresholds.
func (t Thresholds) Check() error {
	if t.HotMargin < 0 || t.HotMargin > 50 {
		return fmt.Errorf("conditions.hot_margin_c is %g, and must be from 0 to 50", t.HotMargin)
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"slow_clock_ratio", t.SlowClock}, {"at_limit_ratio", t.AtLimit}, {"memory_full_ratio", t.MemoryFull}} {
		if !(r.v > 0 && r.v <= 1) {
			return fmt.Errorf("conditions.%s is %g, and must be above 0 and at most 1", r.name, r.v)
		}
	}
	return nil
}
