package driver

import (
	"fmt"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"github.com/ttmon/ttmon/internal/model"
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
	binding int     // counts unbinds: who waited for one binding must not touch the next
	made    []entry // by this binding

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
	pci, number := d.addr.dir(), strconv.Itoa(index)
	class := path.Join(pci, "tenstorrent", d.className())
	d.putLink(pci, "driver", "bus/pci/drivers/tenstorrent")
	d.put("sys/"+pci+"/msi_irqs", strconv.Itoa(d.function().irq), tree.Text("msi"))
	d.put("sys/"+pci+"/tenstorrent", d.className(), d.classDevice(class))
	d.putLink("class/tenstorrent", d.className(), class)
	d.putLink("dev/char", d.devNumber(), class)
	d.putLink("bus/pci/drivers/tenstorrent", d.BDF(), pci)
	if d.driver.version.AtLeast(v250) {
		proc := &tree.Dir{Mode: 0o555}
		proc.Add("pids", d.pidsFile())
		d.put("proc/driver/tenstorrent", number, proc)
	}
	d.put("dev/tenstorrent", number, d.nodeFile())
}

// bindTelemetry makes what the firmware must be ready for: on Blackhole that
// is at once, on Wormhole the driver may have to wait for it.
func (d *Device) bindTelemetry() {
	pci := d.addr.dir()
	d.addAttributes(d.findFunction().Dir("tenstorrent").Dir(d.className()))
	if mon := d.hwmonDevice(); mon != nil {
		x := fmt.Sprintf("hwmon%d", d.hwmon)
		dir := path.Join(pci, "hwmon", x)
		mon.Add("device", &tree.Link{Target: "../../../" + d.BDF()})
		mon.Add("subsystem", &tree.Link{Target: relative(dir, "class/hwmon")})
		d.put("sys/"+pci+"/hwmon", x, mon)
		d.putLink("class/hwmon", x, dir)
	}
	if name := d.byID(); name != "" {
		d.put("dev/tenstorrent/by-id", name, &tree.Link{Target: "../" + strconv.Itoa(d.index)})
	}
}

// entry is a name in a directory.
type entry struct {
	dir  *tree.Dir
	name string
}

// put makes a file that is there for as long as the driver has the device.
func (d *Device) put(place, name string, node tree.Node) {
	dir := d.driver.Root.At(place)
	dir.Add(name, node)
	d.made = append(d.made, entry{dir, name})
}

// putLink makes a link from one place below /sys to another.
func (d *Device) putLink(place, name, to string) {
	d.put("sys/"+place, name, &tree.Link{Target: relative(place, to)})
}

func (d *Device) className() string { return fmt.Sprintf("tenstorrent!%d", d.index) }

// unbind takes the files away again, but for the PCI function's own.
// driver.mu is held.
func (d *Device) unbind() {
	if !d.bound {
		return
	}
	for _, e := range d.made {
		e.dir.Remove(e.name)
	}
	for _, name := range []string{"hwmon", "tenstorrent", "msi_irqs"} {
		d.findFunction().Remove(name) // the directories that were made for it
	}
	d.bound, d.made = false, nil
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
