package node

import (
	"sync"

	"github.com/ttmon/ttmon/internal/daemon"
)

// reloads reads the configuration again.
type reloads struct {
	mu      sync.Mutex
	options Options
}

// reload reads the configuration again and reports what has changed, a sentence for
// each setting.
func (d *ttmond) reload() (said []string, err error) {
	d.reloads.mu.Lock()
	defer d.reloads.mu.Unlock()
	next, err := Configure(d.reloads.options)
	if err != nil {
		return nil, err
	}
	next.Alloc.MaxBuffers = d.memory.maxBuffers(next.Alloc.MaxBuffers, d.log)
	return d.changeable(&next).Apply(&d.live, &next, "ttmond starts again (ttmond --takeover, or a restart of the unit)", d.log), nil
}

// changeable is what can change while ttmond runs, by setting.
func (d *ttmond) changeable(next *Config) daemon.Changes {
	can := daemon.Changes{}
	can.On(func() { d.logs.SetLevel(next.Log.Level) }, "log.level")
	can.On(func() { d.collector.pace.setInterval(next.Collect.Interval.Duration) }, "collect.interval")
	can.On(func() { d.collector.collector.SetThresholds(next.Conditions) },
		"conditions.hot_margin_c", "conditions.slow_clock_ratio", "conditions.at_limit_ratio", "conditions.memory_full_ratio")
	can.On(func() { d.ledger.SetMaxBuffers(next.Alloc.MaxBuffers) }, "alloc.max_buffers")
	can.On(func() { d.keeper.Store(next.Alloc.Keeper) }, "alloc.keeper")
	return can
}
