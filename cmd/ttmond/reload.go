package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/daemon"
)

// reloads reads the configuration again.
type reloads struct {
	mu    sync.Mutex
	flags flags
}

// awaitReloads reads the configuration again at every hangup.
func (d *ttmond) awaitReloads(ctx context.Context, hups <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hups:
			if _, err := d.reload(); err != nil {
				d.log.Error("config reload failed; keeping the current configuration", "err", err)
			}
		}
	}
}

// reload reads the configuration again and says what came of it, a sentence
// for each thing that has changed. What cannot change while ttmond runs is
// said to stay, every time, until it has been started again.
func (d *ttmond) reload() (said []string, err error) {
	d.reloads.mu.Lock()
	defer d.reloads.mu.Unlock()
	next, err := configure(d.reloads.flags)
	if err != nil {
		return nil, err
	}
	next.Alloc.MaxBuffers = d.memory.maxBuffers(next.Alloc.MaxBuffers, d.log)
	can := d.changeable(&next)
	var todo []*change
	daemon.EachDifference(&d.live, &next, func(name string, old, new reflect.Value) {
		do := can[name]
		if do == nil {
			said = append(said, fmt.Sprintf("%s stays %s until ttmond starts again (ttmond --takeover, or a restart of the unit)", name, daemon.FormatSetting(old)))
			return
		}
		old.Set(new)
		said = append(said, name+" has changed")
		if !slices.Contains(todo, do) {
			todo = append(todo, do)
		}
	})
	for _, c := range todo {
		c.do()
	}
	for _, s := range said {
		d.log.Info("config reloaded", "change", s)
	}
	if len(said) == 0 {
		d.log.Info("config reloaded", "change", "none")
	}
	return said, nil
}

// change is what is done once, whichever of its settings has changed.
type change struct{ do func() }

// changeable is what can change while ttmond runs, by setting.
func (d *ttmond) changeable(next *config) map[string]*change {
	can := map[string]*change{}
	add := func(do func(), names ...string) {
		c := &change{do}
		for _, name := range names {
			can[name] = c
		}
	}
	add(func() { d.logs.SetLevel(next.Log.Level) }, "log.level")
	add(func() { d.collector.setInterval(next.Collect.Interval.Duration) }, "collect.interval")
	add(func() { d.collector.collector.SetThresholds(next.Conditions) },
		"conditions.hot_margin_c", "conditions.slow_clock_ratio", "conditions.at_limit_ratio", "conditions.memory_full_ratio")
	add(func() { d.ledger.SetMaxBuffers(next.Alloc.MaxBuffers) }, "alloc.max_buffers")
	add(func() { d.keeper.Store(next.Alloc.Keeper) }, "alloc.keeper")
	return can
}
