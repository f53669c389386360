package driver

import (
	"fmt"
	"time"
)

// Forever is a duration that does not end by itself.
const Forever = time.Duration(-1)

// Reset is what a reset tool does: reads wait while it executes, fail until
// the post-reset step, and then find counters and heartbeat restarted. A
// window of Forever is a tool that died before its last step; fails leaves
// the chip off the bus. Reset returns at once.
func (d *Device) Reset(execute, between time.Duration, fails bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reset != noReset {
		return fmt.Errorf("device %s is in a reset already", d.BDF())
	}
	d.setPhase(executing)
	go func() {
		d.zapWindows()
		if !d.sleep(execute) {
			return
		}
		d.mu.Lock()
		d.setPhase(window)
		ended := d.resetDone
		d.mu.Unlock()
		if between == Forever || !d.sleepOr(between, ended) {
			return
		}
		_ = d.PostReset(fails)
	}()
	return nil
}

// PostReset ends a reset's window.
func (d *Device) PostReset(fails bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reset != window {
		return fmt.Errorf("device %s is not between a reset and its post-reset step", d.BDF())
	}
	d.chip.Reset()
	d.dead = fails
	for _, o := range d.openers {
		o.stale = true
	}
	d.setPhase(noReset)
	return nil
}

// setPhase changes the phase and wakes who waits for it. d.mu is held.
func (d *Device) setPhase(p resetPhase) {
	if d.resetDone != nil {
		close(d.resetDone)
		d.resetDone = nil
	}
	d.reset = p
	if p != noReset {
		d.resetDone = make(chan struct{})
	}
}

func (d *Device) sleep(t time.Duration) bool { return d.sleepOr(t, nil) }

// sleepOr waits; it is false if the host closed or ended came first.
func (d *Device) sleepOr(t time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
	case <-d.driver.closed:
	}
	return false
}
