package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
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
// for each thing that has changed.
func (d *ttmond) reload() (said []string, err error) {
	d.reloads.mu.Lock()
	defer d.reloads.mu.Unlock()
	next, err := configure(d.reloads.flags)
	if err != nil {
		return nil, err
	}
	old := &d.live
	apply := func(what string, changed bool, do func()) {
		if changed {
			do()
			said = append(said, what+" has changed")
		}
	}
	apply("log.level", old.Log.Level != next.Log.Level, func() { d.logs.setLevel(next.Log.Level) })
	apply("collect.interval", old.Collect.Interval != next.Collect.Interval, func() { d.collector.setInterval(next.Collect.Interval.Duration) })
	apply("alloc.max_buffers", old.Alloc.MaxBuffers != next.Alloc.MaxBuffers, func() { d.ledger.SetMaxBuffers(next.Alloc.MaxBuffers) })
	apply("alloc.keeper", old.Alloc.Keeper != next.Alloc.Keeper, func() { d.keeper.Store(next.Alloc.Keeper) })
	for what, pair := range map[string][2]any{
		"state_dir": {old.StateDir, next.StateDir}, "root": {old.Root, next.Root},
		"alloc.socket": {old.Alloc.Socket, next.Alloc.Socket}, "alloc.mode": {old.Alloc.Mode, next.Alloc.Mode}, "alloc.group": {old.Alloc.Group, next.Alloc.Group},
		"api.socket": {old.API.Socket, next.API.Socket}, "api.mode": {old.API.Mode, next.API.Mode}, "api.group": {old.API.Group, next.API.Group},
		"collect.patience": {old.Collect.Patience, next.Collect.Patience}, "log.format": {old.Log.Format, next.Log.Format},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			said = append(said, fmt.Sprintf("%s stays %v until ttmond starts again (ttmond --takeover, or a restart of the unit)", what, pair[0]))
		}
	}
	old.Log.Level, old.Collect.Interval = next.Log.Level, next.Collect.Interval
	old.Alloc.MaxBuffers, old.Alloc.Keeper = next.Alloc.MaxBuffers, next.Alloc.Keeper
	for _, s := range said {
		d.log.Info("configuration read again: " + s)
	}
	if len(said) == 0 {
		d.log.Info("configuration read again: nothing has changed")
	}
	return said, nil
}
