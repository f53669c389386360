package driver

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/tree"
)

// Options say what to simulate.
type Options struct {
	Boards   []chip.Spec
	Version  Version // zero: Default
	Firmware chip.Firmware
	Seed     uint64
	Load     float64 // of every chip at the start, settled
	Frozen   bool    // the physics stand still; Advance moves them
	Host     Surroundings
}

// Driver is the simulated module with its devices.
type Driver struct {
	Root *tree.Dir // holds sys, proc and dev

	major  int
	host   Surroundings
	clock  clock
	closed chan struct{} // lets blocked reads go
	end    sync.Once

	mu        sync.Mutex
	version   Version
	devices   []*Device // all that were ever there, in the order of their PCI addresses
	nextHwmon int
	audit     []Access
}

// clock is the time of the simulated host.
type clock struct {
	mu      sync.Mutex
	start   time.Time
	frozen  bool
	skipped time.Duration // by Advance
}

func (c *clock) now() chip.Now {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := chip.Now{Physics: c.skipped, Beat: time.Since(c.start) + c.skipped}
	if !c.frozen {
		n.Physics = n.Beat
	}
	return n
}

// New makes a host's driver with all boards bound.
func New(o Options) *Driver {
	d := &Driver{
		Root: &tree.Dir{}, host: o.Host, closed: make(chan struct{}),
		clock:   clock{start: time.Now(), frozen: o.Frozen},
		version: o.Version, major: freeMajor(o.Host.Majors),
	}
	if d.version == (Version{}) {
		d.version = Default
	}
	d.nextHwmon = d.unrelatedHwmon()
	places := layOut(o.Boards)
	addrs := addresses(places, o.Host)
	for i, p := range places {
		id := chip.Identity{Serial: serial(p, o.Seed)}
		c := chip.New(p.spec, id, o.Firmware, o.Seed<<8+uint64(i))
		c.SetLoad(o.Load, d.clock.now())
		c.Settle(d.clock.now())
		d.devices = append(d.devices, &Device{
			driver: d, chip: c, addr: addrs[i], board: p.board, slot: i,
			linkGen: p.spec.LinkGen, linkWidth: p.spec.LinkWidth,
			texts: make(map[string]string), errs: make(map[string]errno), blocks: make(map[string]chan struct{}),
		})
	}
	d.load()
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

// load makes the module's files and binds every plugged device.
func (d *Driver) load() {
	d.module()
	if d.version.AtLeast(v250) {
		d.Root.Dir("proc").Dir("driver").Add("tenstorrent", &tree.Dir{Mode: 0o555})
	} else {
		d.Root.Dir("proc").Dir("driver").Dir("tenstorrent").Mode = 0o555
	}
	sys := d.Root.Dir("sys")
	sys.Dir("class").Dir("tenstorrent")
	drv := sys.Dir("bus").Dir("pci").Dir("drivers").Dir("tenstorrent")
	drv.Add("module", &tree.Link{Target: "../../../../module/tenstorrent"})
	d.Root.Dir("dev").Dir("tenstorrent")
	for _, dev := range d.devices {
		if !dev.unplugged {
			dev.bind(d.freeIndex(dev), d.takeHwmon())
		}
	}
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

func (d *Driver) takeHwmon() int {
	n := d.nextHwmon
	d.nextHwmon++
	return n
}

// Close lets every blocked read go, with ENODEV. The files stay.
func (d *Driver) Close() { d.end.Do(func() { close(d.closed) }) }

// Device finds a device by index, PCI address or, with a leading "board:",
// the number of its board.
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

// Version returns the driver's version.
func (d *Driver) Version() Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// Advance moves a frozen host's physics, and every heart, by that much.
func (d *Driver) Advance(by time.Duration) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	d.clock.skipped += by
}

// Reload unloads the module and loads it again in another version.
func (d *Driver) Reload(v Version) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		dev.unbind()
	}
	d.version = v
	d.load()
}
