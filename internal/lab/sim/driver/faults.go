package driver

import (
	"syscall"
	"time"
)

// resetPhase is where a device is in a chip reset.
type resetPhase int

const (
	noReset   resetPhase = iota
	executing            // the driver holds its reset lock: fenced reads wait
	window               // done, but POST_RESET has not come: fenced reads give ENODATA
)

// gate waits while reads of the file are held up, and says whether they fail.
// Nothing but the end of the fault ends the wait.
func (d *Device) gate(name string, k kind) errno {
	for {
		wait, e := d.obstacle(name, k)
		if wait == nil {
			return e
		}
		if e := d.hold(wait); e != 0 {
			return e
		}
	}
}

// hold waits for something to end, or for the whole host to.
func (d *Device) hold(wait <-chan struct{}) errno {
	d.waiting.Add(1)
	defer d.waiting.Add(-1)
	select {
	case <-wait:
		return 0
	case <-d.driver.closed:
		return syscall.ENODEV
	}
}

// Waiting is how many reads are held up at this moment.
func (d *Device) Waiting() int { return int(d.waiting.Load()) }

// Reads is how many reads of the driver's files have reached the chip: those of
// the PCI core do not, nor those that the driver refuses during a reset.
func (d *Device) Reads() int { return int(d.reads.Load()) }

// obstacle is what stands in the way of a read: something to wait for, or an
// error.
func (d *Device) obstacle(name string, k kind) (wait <-chan struct{}, e errno) {
	fences := d.driver.Version().AtLeast(v290)
	if _, bound := d.Index(); !bound && k != static {
		return nil, syscall.ENODEV
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range []string{name, string(k), everything} {
		if ch := d.blocks[key]; ch != nil {
			return ch, 0
		}
	}
	if k != telemetry || !fences {
		return nil, 0
	}
	switch d.reset {
	case executing:
		return d.resetDone, 0
	case window:
		return nil, syscall.ENODATA
	}
	return nil, 0
}

// everything is the name that blocks all files of a device.
const everything = "everything"

// allOnes reports whether a register read comes back without an answer.
func (d *Device) allOnes(k kind) bool {
	fences := d.driver.Version().AtLeast(v290)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead || d.reset != noReset && (k == counter || !fences)
}

func (d *Device) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// SetDead takes the chip off the bus, or puts it back: no error, all ones.
func (d *Device) SetDead(dead bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = dead
}

// Work lets tt-metal's dispatch cores account for programs that run for a share of
// the time.
func (d *Device) Work(share float64) {
	d.memory.Work(share, func() time.Duration { return time.Since(d.driver.clock.start) })
}

// EndWork is what a program leaves that closed the chip in good order.
func (d *Device) EndWork() { d.memory.Ended(false) }
