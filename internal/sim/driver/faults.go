package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/sim/chip"
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

// allOnes tells whether a register read comes back without an answer.
func (d *Device) allOnes(k kind) bool {
	fences := d.driver.Version().AtLeast(v290)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead || d.reset != noReset && (k == counter || !fences)
}

// SetDead takes the chip off the bus, or puts it back: no error, all ones.
func (d *Device) SetDead(dead bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = dead
}

// Hang stops the firmware, Unhang lets it go on.
func (d *Device) Hang() { d.chip.Hang(d.driver.clock.now()) }

// Unhang lets hung firmware go on.
func (d *Device) Unhang() { d.chip.Unhang(d.driver.clock.now()) }

// Forever is a duration that does not end by itself.
const Forever = time.Duration(-1)

// Reset is what a reset tool does: reads wait while it executes, fail until
// the post-reset step, and then find counters and heartbeat begun anew. A
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
	now := d.driver.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reset != window {
		return fmt.Errorf("device %s is not between a reset and its post-reset step", d.BDF())
	}
	d.chip.Reset(now)
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

// Block holds up reads of a file ("tt_aiclk"), of a kind ("telemetry",
// "counters", "static") or of "everything" until Unblock, or for a time.
func (d *Device) Block(name string, t time.Duration) error {
	switch name {
	case string(telemetry), string(counter), string(static), everything, "pids":
	default:
		if !d.hasFile(name) {
			return fmt.Errorf("device %s has no file %q", d.BDF(), name)
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

// Unblock lets reads of a file or kind go on; "" all of them. It tells
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

// SetText makes a file print text, whatever its value; the line break is
// added. The file must exist.
func (d *Device) SetText(name, text string) error {
	if !d.hasFile(name) {
		return fmt.Errorf("device %s has no file %q", d.BDF(), name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[name] = text
	return nil
}

// SetError makes reads of a file fail; zero ends it.
func (d *Device) SetError(name string, e syscall.Errno) error {
	if !d.hasFile(name) {
		return fmt.Errorf("device %s has no file %q", d.BDF(), name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs[name] = e
	return nil
}

// Clear ends what SetText and SetError began, for one file or, with "", all.
func (d *Device) Clear(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == "" {
		clear(d.texts)
		clear(d.errs)
		return
	}
	delete(d.texts, name)
	delete(d.errs, name)
}

// SetLink sets the PCIe link as it is trained now.
func (d *Device) SetLink(gen, width int) error {
	spec := d.chip.Spec()
	if gen < 1 || gen > spec.LinkGen || width < 1 || width > spec.LinkWidth {
		return fmt.Errorf("device %s trains to generation 1…%d and width 1…%d", d.BDF(), spec.LinkGen, spec.LinkWidth)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.linkGen, d.linkWidth = gen, width
	return nil
}

// SetLoad gives the device work that no process does.
func (d *Device) SetLoad(load float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.baseLoad = load
	d.applyLoad()
}

// SetWork is the load that all workload processes together put on the device.
func (d *Device) SetWork(load float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workLoad = load
	d.applyLoad()
}

func (d *Device) applyLoad() {
	d.chip.SetLoad(d.baseLoad+d.workLoad, d.driver.clock.now())
	if d.driver.clock.isFrozen() {
		d.chip.Settle(d.driver.clock.now())
	}
}

// SetAmbient sets the temperature of the air around the chip, in °C.
func (d *Device) SetAmbient(celsius float64) { d.chip.SetAmbient(celsius, d.driver.clock.now()) }

// SetTraffic fixes the bytes per second over PCIe; negative numbers give them
// back to the load.
func (d *Device) SetTraffic(toDevice, fromDevice float64) {
	d.chip.SetTraffic(toDevice, fromDevice, d.driver.clock.now())
}

// SetCounter sets a PCIe counter by its file name, or all with "".
func (d *Device) SetCounter(file string, value uint32) error {
	if file == "" {
		d.chip.SetCounters(-1, -1, value, d.driver.clock.now())
		return nil
	}
	for c, base := range chip.CounterNames {
		if noc, ok := strings.CutPrefix(file, base); ok && (noc == "0" || noc == "1") {
			d.chip.SetCounters(chip.Counter(c), int(noc[0]-'0'), value, d.driver.clock.now())
			return nil
		}
	}
	return fmt.Errorf("no PCIe counter %q: they are the files in pcie_perf_counters", file)
}
