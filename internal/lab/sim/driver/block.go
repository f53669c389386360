package driver

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Block holds up reads of a file ("tt_aiclk"), of a kind ("telemetry",
// "counters", "static"), through a "window" or of "everything" until Unblock, or for a time.
func (d *Device) Block(name string, t time.Duration) error {
	switch name {
	case string(telemetry), string(counter), string(static), everything, "pids", throughWindow:
	default:
		if _, err := d.findFile(name); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocks[name] != nil {
		return fmt.Errorf("%s of device %s is blocked already", name, d.BDF())
	}
	ch := make(chan struct{})
	d.blocks[name] = ch
	if t != Forever {
		go func() {
			if d.sleepOr(t, ch) {
				d.unblock(name, ch)
			}
		}()
	}
	return nil
}

// Blocked lists what Block holds up, sorted.
func (d *Device) Blocked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.Sorted(maps.Keys(d.blocks))
	if names == nil {
		names = []string{}
	}
	return names
}

// State says in a word what is the matter with the device.
func (d *Device) State() string {
	_, bound := d.Index()
	plugged := d.Plugged()
	hung := d.chip.Hung()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !plugged:
		return "unplugged"
	case !bound:
		return "unbound"
	case d.reset == executing:
		return "resetting"
	case d.reset == window:
		return "reset-window"
	case d.dead:
		return "dead"
	case len(d.blocks) > 0:
		return "blocked"
	case hung:
		return "hung"
	}
	return "ok"
}

// Unblock lets reads of a file or kind go on; "" all of them. It reports
// whether anything was blocked.
func (d *Device) Unblock(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{name}
	if name == "" {
		names = slices.Collect(maps.Keys(d.blocks))
	}
	found := false
	for _, n := range names {
		if ch := d.blocks[n]; ch != nil {
			close(ch)
			delete(d.blocks, n)
			found = true
		}
	}
	return found
}

func (d *Device) unblock(name string, ch chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocks[name] == ch {
		close(ch)
		delete(d.blocks, name)
	}
}

// releaseAll ends whatever holds up readers; those then find the device gone.
func (d *Device) releaseAll() {
	d.Unblock("")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setPhase(noReset)
}
