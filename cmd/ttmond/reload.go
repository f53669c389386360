package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// reloads reads the configuration again.
type reloads struct {
	mu    sync.Mutex
	flags flags
}

// hangups listens for SIGHUP from now on and for good, except where that says
// that the terminal was closed. It is called before anybody is told that ttmond
// is ready; it never stops, or a SIGHUP would kill a ttmond that is ending, and
// its clients with it.
func hangups() <-chan os.Signal {
	if onTerminal() {
		return nil
	}
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	return hups
}

// awaitReloads reads the configuration again at every hangup.
func (d *ttmond) awaitReloads(ctx context.Context, hups <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hups:
			if _, err := d.reload(); err != nil {
				d.log.Error("the configuration was not read again; the old one holds", "err", err)
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
	eachDifference(&d.live, &next, func(name string, old, new reflect.Value) {
		do := can[name]
		if do == nil {
			said = append(said, fmt.Sprintf("%s stays %s until ttmond starts again (ttmond --takeover, or a restart of the unit)", name, sayValue(old)))
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
		d.log.Info("configuration read again: " + s)
	}
	if len(said) == 0 {
		d.log.Info("configuration read again: nothing has changed")
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
	add(func() { d.logs.setLevel(next.Log.Level) }, "log.level")
	add(func() { d.collector.setInterval(next.Collect.Interval.Duration) }, "collect.interval")
	add(func() { d.ledger.SetMaxBuffers(next.Alloc.MaxBuffers) }, "alloc.max_buffers")
	add(func() { d.keeper.Store(next.Alloc.Keeper) }, "alloc.keeper")
	add(func() { d.recorder.configure(next.Metrics) }, "metrics.workloads", "metrics.processes", "metrics.estimates", "metrics.compat")
	add(func() { d.remotes.configure(next.RemoteWrite) }, "remote_write")
	if d.alerts != nil {
		add(func() { d.alerts.Configure(next.Alerts.Rules, next.Alerts.Interval.Duration) }, "alerts.rules", "alerts.interval")
		add(func() { d.outbox.SetTargets(next.Alerts.targets()) }, "alerts.webhook", "alerts.command", "alerts.mail")
	}
	return can
}

// eachDifference calls f with every setting in which two configurations
// differ, in the order of the file. A list is one setting.
func eachDifference(old, new *config, f func(name string, old, new reflect.Value)) {
	var walk func(prefix string, a, b reflect.Value)
	walk = func(prefix string, a, b reflect.Value) {
		for i := range a.NumField() {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("toml"), ",")
			if name == "" {
				continue // from the command line only
			}
			x, y := a.Field(i), b.Field(i)
			switch {
			case x.Kind() == reflect.Struct && x.Type() != reflect.TypeFor[duration]():
				walk(prefix+name+".", x, y)
			case !reflect.DeepEqual(x.Interface(), y.Interface()):
				f(prefix+name, x, y)
			}
		}
	}
	walk("", reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem())
}

// sayValue is a setting as it is; a list may have secrets in it.
func sayValue(v reflect.Value) string {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return "as it is"
	}
	return fmt.Sprint(v.Interface())
}
