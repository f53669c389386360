package driver

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// Options say what to simulate.
type Options struct {
	Boards   []chip.Spec
	Version  Version // zero: Default
	Firmware chip.Firmware
	Seed     uint64
	Load     float64 // of every chip at the start, settled
	Frozen   bool    // the physics stand still; Advance moves them
	Unloaded bool    // the module is not loaded
	Host     Surroundings
}

// Driver is the simulated module with its devices.
type Driver struct {
	Root *tree.Dir // holds sys, proc and dev
	// OnChange is called, with no lock held, after Places may have changed.
	// It must be set before anybody else uses the driver; nil: none.
	OnChange func()

	major  int
	host   Surroundings
	clock  clock
	closed chan struct{} // lets blocked reads go
	end    sync.Once
	open   atomic.Int64 // open descriptions of all nodes

	mu        sync.Mutex
	version   Version   // zero: not loaded
	devices   []*Device // all that were ever there, in the order of their PCI addresses
	nextHwmon int
	audit     []Access
	log       kernelLog

	sensor *function // see unrelatedHwmon; nil if the host has sensors of its own
}

// New makes a host's driver with all boards bound.
func New(o Options) *Driver {
	d := &Driver{
		Root: &tree.Dir{}, host: o.Host, closed: make(chan struct{}),
		clock: clock{start: time.Now(), frozen: o.Frozen},
		major: freeMajor(o.Host.Majors),
	}
	d.Root.At("proc/driver").Add("tenstorrent", &tree.Dir{Mode: 0o555})
	d.Root.Dir("dev").Add("kmsg", d.log.file())
	d.nextHwmon = d.unrelatedHwmon()
	places := layOut(o.Boards)
	addrs := addresses(places, o.Host)
	for i, p := range places {
		id := chip.Identity{Serial: serial(p, o.Seed)}
		c := chip.New(p.spec, id, o.Firmware, o.Seed<<8+uint64(i), d.clock.now)
		c.SetLoad(o.Load)
		c.Settle()
		dev := &Device{
			driver: d, chip: c, addr: addrs[i], board: p.board, slot: i,
			baseLoad: o.Load, linkGen: p.spec.LinkGen, linkWidth: p.spec.LinkWidth,
			texts: make(map[string]string), errs: make(map[string]errno), blocks: make(map[string]chan struct{}),
			windows: newWindows(p.spec.Arch),
		}
		dev.memory = dev.newMemory()
		dev.appear()
		d.devices = append(d.devices, dev)
	}
	v := o.Version
	if v == (Version{}) {
		v = Default
	}
	if !o.Unloaded {
		d.load(v)
	}
	return d
}

// serial is a board's serial number: its code, a revision, and a number of
// its own; a Galaxy ships with one for all chips.
func serial(p place, seed uint64) uint64 {
	s := uint64(p.spec.Code) << 36
	switch p.spec.Card {
	case "galaxy-wormhole":
		return 1<<56 | s | 1<<32
	case "galaxy-blackhole":
		return s | 1<<32 | 0x31900000 + seed%0x10000<<4
	}
	if p.spec.FMin == 500 { // Wormhole numbers begin with 01
		s |= 1 << 56
	}
	return s | 2<<32 | (0x11900000 + seed%0x1000<<8 + uint64(p.board) + 1)
}

// freeMajor is the first character major counting down from where the kernel
// gives them out dynamically.
func freeMajor(used []int) int {
	for major := 246; major > 234; major-- {
		if !slices.Contains(used, major) {
			return major
		}
	}
	return 511
}

// load makes the module's files and binds every device that is plugged in.
// d.mu is held, or d is not shared yet.
func (d *Driver) load(v Version) {
	d.version = v
	d.module()
	sys := d.Root.Dir("sys")
	sys.At("class/tenstorrent")
	drv := sys.At("bus/pci/drivers/tenstorrent")
	drv.Add("module", &tree.Link{Target: "../../../../module/tenstorrent"})
	for _, name := range []string{"bind", "unbind", "new_id", "remove_id", "uevent"} {
		drv.Add(name, &tree.File{Mode: 0o200, Size: 4096})
	}
	d.Root.At("dev/tenstorrent")
	for _, dev := range d.devices {
		if dev.plugged {
			dev.bind(d.freeIndex(dev), d.allocHwmon())
		}
	}
}

// Places are the paths of a real host at which the tree's directory of the
// same path is to be seen now. It changes with the driver's version and with
// the devices.
func (d *Driver) Places() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []string{"/sys/class/hwmon", "/sys/bus/pci/devices", "/sys/dev/char"}
	for _, root := range d.Root.At("sys/devices").Names() {
		list = append(list, "/sys/devices/"+root)
	}
	if d.version == (Version{}) {
		return list
	}
	list = append(list, "/sys/class/tenstorrent", "/sys/bus/pci/drivers/tenstorrent", "/sys/module/tenstorrent")
	if d.version.AtLeast(v250) {
		list = append(list, "/proc/driver/tenstorrent")
	}
	if slices.ContainsFunc(d.devices, func(dev *Device) bool { return dev.bound }) {
		list = append(list, "/dev/tenstorrent")
	}
	return list
}

// freeIndex is the number the driver gives a device: the lowest that is free,
// or the fixed one of a Galaxy's chip.
func (d *Driver) freeIndex(dev *Device) int {
	used := make(map[int]bool)
	for _, other := range d.devices {
		if other.bound && other != dev {
			used[other.index] = true
		}
	}
	if dev.chip.Spec().Galaxy() && d.version.AtLeast(v280) {
		if i, ok := galaxyIndex(dev.chip.Spec().Arch, dev.addr.bus); ok && !used[i] {
			return i
		}
	}
	for i := 0; ; i++ {
		if !used[i] {
			return i
		}
	}
}

func (d *Driver) allocHwmon() int {
	n := d.nextHwmon
	d.nextHwmon++
	return n
}

// Close lets every blocked read go, with ENODEV. The files stay.
func (d *Driver) Close() { d.end.Do(func() { close(d.closed) }) }

// Device finds a device by index or PCI address.
func (d *Driver) Device(name string) (*Device, error) {
	for _, dev := range d.Devices() {
		if dev.BDF() == name {
			return dev, nil
		}
		if i, ok := dev.Index(); ok && strconv.Itoa(i) == name {
			return dev, nil
		}
	}
	return nil, fmt.Errorf("no simulated device %q: give the index of one that is plugged in, or a PCI address (see list)", name)
}

// Devices lists all devices, plugged in or not, by PCI address.
func (d *Driver) Devices() []*Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.devices)
}

// Version returns the driver's version; it is zero while it is not loaded.
func (d *Driver) Version() Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// Loaded reports whether the module is loaded.
func (d *Driver) Loaded() bool { return d.Version() != (Version{}) }

// Indices lists the indices of the devices that are bound, in order.
func (d *Driver) Indices() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []int{}
	for _, dev := range d.devices {
		if dev.bound {
			list = append(list, dev.index)
		}
	}
	slices.Sort(list)
	return list
}

// SetWork is the load that all workloads together put on a device.
func (d *Driver) SetWork(index int, load float64) {
	if dev, err := d.Device(strconv.Itoa(index)); err == nil {
		dev.SetWork(load)
	}
}

// Settle lets all chips look as if their load had lasted for long.
func (d *Driver) Settle() {
	for _, dev := range d.Devices() {
		dev.chip.Settle()
	}
}

// Advance lets that much time pass at once: for the physics, also of a frozen
// host, and for heartbeats.
func (d *Driver) Advance(by time.Duration) { d.clock.advance(by) }

// Freeze stops the physics, or lets them go on from where they stopped.
func (d *Driver) Freeze(frozen bool) { d.clock.freeze(frozen) }

func (d *Driver) changed() {
	if d.OnChange != nil {
		d.OnChange()
	}
}

// Reload unloads the module and, unless v is zero, loads it in that version.
// As with the real one, open device nodes keep it from being unloaded.
func (d *Driver) Reload(v Version) error {
	if n := d.OpenCount(); n > 0 {
		return fmt.Errorf("the simulated module is in use: %d device nodes are open", n)
	}
	defer d.changed()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		dev.unbind()
	}
	if d.version = v; v != (Version{}) {
		d.load(v)
	}
	return nil
}
