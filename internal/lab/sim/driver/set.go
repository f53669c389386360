package driver

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
)

// SetText makes a file print text, whatever its value; the line break is
// added. The file must exist.
func (d *Device) SetText(name, text string) error {
	if _, err := d.findFile(name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[name] = text
	return nil
}

// SetError makes reads of a file fail; zero ends it.
func (d *Device) SetError(name string, e syscall.Errno) error {
	if _, err := d.findFile(name); err != nil {
		return err
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
	d.chip.SetLoad(d.baseLoad + d.workLoad)
	if d.driver.clock.isFrozen() {
		d.chip.Settle()
	}
}

// SetCounter sets a PCIe counter by its file name, or all with "".
func (d *Device) SetCounter(file string, value uint32) error {
	if file == "" {
		d.chip.SetCounters(-1, -1, value)
		return nil
	}
	for c, base := range chip.CounterNames {
		if noc, ok := strings.CutPrefix(file, base); ok && (noc == "0" || noc == "1") {
			d.chip.SetCounters(chip.Counter(c), int(noc[0]-'0'), value)
			return nil
		}
	}
	return fmt.Errorf("no PCIe counter %q: they are the files in pcie_perf_counters", file)
}
