package driver

import (
	"fmt"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sim/arc"
	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/tree"
)

type errno = syscall.Errno

// Device is one PCIe function, whether it is plugged in or not.
type Device struct {
	driver      *Driver
	chip        *chip.Chip
	addr        address
	board, slot int

	// Guarded by driver.mu.
	plugged bool // the PCI function is there
	bound   bool // and the driver has it, under:
	index   int
	hwmon   int
	binding int    // counts unbinds: who waited for one binding must not touch the next
	link    string // name in /dev/tenstorrent/by-id; empty if there is none

	waiting atomic.Int64 // reads held up in gate
	reads   atomic.Int64 // that reached the chip

	mu                 sync.Mutex
	baseLoad, workLoad float64
	reset              resetPhase
	resetDone          chan struct{} // closed when the phase changes; nil outside a reset
	dead               bool          // every register reads all ones
	linkGen, linkWidth int
	texts              map[string]string        // by file: printed instead of the value
	errs               map[string]errno         // by file: fails with it
	blocks             map[string]chan struct{} // by file or kind: reads wait until closed
	openers            []*Opener                // newest first
	windows            windows
	memory             *arc.Chip // as the bus shows it
}

// kind says how a file behaves in trouble.
type kind string

const (
	telemetry kind = "telemetry" // fenced by a reset
	counter   kind = "counters"  // reads the bus, never fenced
	static    kind = "static"    // no access to the chip: labels, PCI core
)

// BDF is the PCI address.
func (d *Device) BDF() string { return d.addr.bdf() }

// Index is the number in /dev/tenstorrent; ok is false while it is unplugged
// or the module is not loaded.
func (d *Device) Index() (index int, ok bool) {
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	return d.index, d.bound
}

// Plugged reports whether the PCI function is there.
func (d *Device) Plugged() bool {
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	return d.plugged
}

// Chip is the chip behind it.
func (d *Device) Chip() *chip.Chip { return d.chip }

func (d *Device) wormhole() bool { return d.chip.Spec().Arch == model.Wormhole }

func (d *Device) since(wh, bh Version) Version {
	if d.wormhole() {
		return wh
	}
	return bh
}

// bind makes the device's files under an index and a hwmon number. driver.mu
// is held (or the driver is not shared yet).
func (d *Device) bind(index, hwmon int) {
	d.bindNode(index, hwmon)
	if !d.isDead() { // whose firmware does not answer: the driver makes no telemetry
		d.bindTelemetry()
	}
}

// bindNode makes what does not depend on the firmware.
func (d *Device) bindNode(index, hwmon int) {
	d.index, d.hwmon, d.bound = index, hwmon, true
	root, sys := d.driver.Root, d.driver.Root.Dir("sys")
	pci := d.findFunction()
	pci.Add("driver", &tree.Link{Target: relative(d.addr.dir(), "bus/pci/drivers/tenstorrent")})
	pci.Dir("msi_irqs").Add(strconv.Itoa(d.function().irq), tree.Text("msi"))
	class := path.Join(d.addr.dir(), "tenstorrent", d.className())
	pci.Dir("tenstorrent").Add(d.className(), d.classDevice(class))
	sys.Dir("class").Dir("tenstorrent").Add(d.className(), &tree.Link{Target: relative("class/tenstorrent", class)})
	sys.Dir("dev").Dir("char").Add(d.devNumber(), &tree.Link{Target: relative("dev/char", class)})
	sys.Dir("bus").Dir("pci").Dir("drivers").Dir("tenstorrent").
		Add(d.BDF(), &tree.Link{Target: relative("bus/pci/drivers/tenstorrent", d.addr.dir())})
	if d.driver.version.AtLeast(v250) {
		proc := &tree.Dir{Mode: 0o555}
		proc.Add("pids", d.pidsFile())
		root.Dir("proc").Dir("driver").Dir("tenstorrent").Add(strconv.Itoa(index), proc)
	}
	root.Dir("dev").Dir("tenstorrent").Add(strconv.Itoa(index), d.nodeFile())
}

// bindTelemetry makes what the firmware must be ready for: on Blackhole that
// is at once, on Wormhole the driver may have to wait for it.
func (d *Device) bindTelemetry() {
	sys, pci := d.driver.Root.Dir("sys"), d.findFunction()
	d.addAttributes(pci.Dir("tenstorrent").Dir(d.className()))
	if mon := d.hwmonDevice(); mon != nil {
		x := fmt.Sprintf("hwmon%d", d.hwmon)
		dir := path.Join(d.addr.dir(), "hwmon", x)
		mon.Add("device", &tree.Link{Target: "../../../" + d.BDF()})
		mon.Add("subsystem", &tree.Link{Target: relative(dir, "class/hwmon")})
		pci.Dir("hwmon").Add(x, mon)
		sys.Dir("class").Dir("hwmon").Add(x, &tree.Link{Target: relative("class/hwmon", dir)})
	}
	if d.link = d.byID(); d.link != "" {
		d.driver.Root.Dir("dev").Dir("tenstorrent").Dir("by-id").
			Add(d.link, &tree.Link{Target: "../" + strconv.Itoa(d.index)})
	}
}

func (d *Device) className() string { return fmt.Sprintf("tenstorrent!%d", d.index) }

// unbind takes the files away again, but for the PCI function's own.
// driver.mu is held.
func (d *Device) unbind() {
	if !d.bound {
		return
	}
	root, sys := d.driver.Root, d.driver.Root.Dir("sys")
	x := fmt.Sprintf("hwmon%d", d.hwmon)
	sys.Dir("class").Dir("hwmon").Remove(x)
	if pci := d.findFunction(); pci != nil {
		pci.Remove("hwmon")
		pci.Remove("tenstorrent")
		pci.Remove("driver")
		pci.Remove("msi_irqs")
	}
	sys.Dir("class").Dir("tenstorrent").Remove(d.className())
	sys.Dir("dev").Dir("char").Remove(d.devNumber())
	sys.Dir("bus").Dir("pci").Dir("drivers").Dir("tenstorrent").Remove(d.BDF())
	root.Dir("proc").Dir("driver").Dir("tenstorrent").Remove(strconv.Itoa(d.index))
	dev := root.Dir("dev").Dir("tenstorrent")
	dev.Remove(strconv.Itoa(d.index))
	if d.link != "" {
		dev.Dir("by-id").Remove(d.link)
	}
	d.bound, d.link = false, ""
	d.binding++
	d.releaseAll()
	d.mu.Lock()
	d.openers = nil // they keep the module busy, but a new binding does not know them
	d.mu.Unlock()
}

// byID is the name of the link that the packaged udev rules make, if any.
func (d *Device) byID() string {
	if !d.driver.version.AtLeast(v260) || !d.chip.Publishes(chip.ASICIDHigh) {
		return ""
	}
	return fmt.Sprintf("%s-%016X", d.chip.Spec().Arch, d.chip.Identity().ASIC)
}

func (d *Device) devNumber() string { return fmt.Sprintf("%d:%d", d.driver.major, d.index) }
