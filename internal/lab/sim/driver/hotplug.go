package driver

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// Unplug takes the device off the bus: its files are gone, descriptors that
// were open give ENODEV.
func (d *Device) Unplug() error {
	defer d.driver.changed()
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	if !d.plugged {
		return fmt.Errorf("device %s is not plugged in", d.BDF())
	}
	d.unbind()
	d.plugged = false
	sys := d.driver.Root.Dir("sys")
	sys.At("bus/pci/devices").Remove(d.BDF())
	sys.At(path.Dir(d.addr.dir())).Remove(d.BDF())
	return nil
}

// Plug puts it back. A negative index or hwmon number lets the driver choose.
// The telemetry files follow after a time, as on a Wormhole whose firmware is
// still booting; Forever is a firmware that never comes up.
func (d *Device) Plug(index, hwmon int, late time.Duration) error {
	defer d.driver.changed()
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	if d.plugged {
		return fmt.Errorf("device %s is plugged in already", d.BDF())
	}
	if index < 0 {
		index = d.driver.freeIndex(d)
	}
	if hwmon < 0 {
		hwmon = d.driver.allocHwmon()
	}
	for _, other := range d.driver.devices {
		switch {
		case other.bound && other.index == index:
			return fmt.Errorf("index %d is taken by device %s", index, other.BDF())
		case other.bound && other.hwmon == hwmon:
			return fmt.Errorf("hwmon%d is taken by device %s", hwmon, other.BDF())
		}
	}
	if slices.Contains(d.driver.host.Hwmon, hwmon) {
		return fmt.Errorf("hwmon%d is the host's own", hwmon)
	}
	d.driver.nextHwmon = max(d.driver.nextHwmon, hwmon+1)
	d.chip.Reset()
	d.appear()
	switch {
	case d.driver.version == (Version{}):
	case late == 0:
		d.bind(index, hwmon)
	default:
		d.bindNode(index, hwmon)
		go d.bindLater(d.binding, late)
	}
	return nil
}

// Rebind lets the driver give the device up and take it again, under the same
// numbers: its files are then those that the chip has something for now. That
// of a dead chip is nothing but the PCIe counters.
func (d *Device) Rebind() error {
	defer d.driver.changed()
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	if !d.bound {
		return fmt.Errorf("device %s is not bound", d.BDF())
	}
	index, hwmon := d.index, d.hwmon
	d.unbind()
	d.bind(index, hwmon)
	return nil
}

// Unbind lets the driver give the device up; it stays on the bus.
func (d *Device) Unbind() error {
	defer d.driver.changed()
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	if !d.bound {
		return fmt.Errorf("device %s is not bound", d.BDF())
	}
	d.unbind()
	return nil
}

// Bind lets the driver take a device that is on the bus.
func (d *Device) Bind() error {
	defer d.driver.changed()
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	switch {
	case d.bound:
		return fmt.Errorf("device %s is bound already", d.BDF())
	case !d.plugged:
		return fmt.Errorf("device %s is not plugged in", d.BDF())
	case d.driver.version == (Version{}):
		return errors.New("the driver is not loaded")
	}
	d.bind(d.driver.freeIndex(d), d.driver.allocHwmon())
	return nil
}

// bindLater adds the telemetry to a binding, unless that has ended by then.
func (d *Device) bindLater(binding int, late time.Duration) {
	if late == Forever || !d.sleep(late) {
		return
	}
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	if d.binding == binding {
		d.bindTelemetry()
	}
}

// Drop removes one file of the bound device, as if the firmware had lacked
// its tag when the driver bound; binding again brings it back.
func (d *Device) Drop(name string) error {
	dir, err := d.findFile(name)
	if err == nil {
		dir.Remove(name)
	}
	return err
}

// findFile is the directory that holds the file of that name.
func (d *Device) findFile(name string) (dir *tree.Dir, err error) {
	if pci := d.findFunction(); pci != nil {
		dir = findBelow(pci, name, 3)
	}
	if dir == nil {
		err = fmt.Errorf("device %s has no file %q", d.BDF(), name)
	}
	return dir, err
}

func findBelow(dir *tree.Dir, name string, depth int) *tree.Dir {
	if _, ok := dir.Get(name).(*tree.File); ok {
		return dir
	}
	if depth == 0 {
		return nil
	}
	for _, n := range dir.Names() {
		if sub, ok := dir.Get(n).(*tree.Dir); ok {
			if found := findBelow(sub, name, depth-1); found != nil {
				return found
			}
		}
	}
	return nil
}
