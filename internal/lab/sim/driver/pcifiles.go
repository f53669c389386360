package driver

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// bars are the chip's memory windows, each at a multiple of its size.
func (d *Device) bars() []bar {
	big := uint64(32 << 30)
	if d.wormhole() {
		big = 32 << 20
	}
	next := uint64(0x20_0000_0000) + uint64(d.slot)<<36
	list := []bar{{number: 0, size: 512 << 20}, {number: 2, size: 1 << 20}, {number: 4, size: big}}
	for i := range list {
		b := &list[i]
		b.start = (next + b.size - 1) / b.size * b.size
		next = b.start + b.size
	}
	return list
}

// numa is the node of the device and its CPUs. Boards spread over the nodes
// of the host; a host that does not say has -1, as in a virtual machine.
func (d *Device) numa() (node int, cpus string) {
	nodes := d.driver.host.Nodes
	if len(nodes) == 0 {
		return -1, "0"
	}
	if len(nodes) == 1 {
		return 0, nodes[0]
	}
	node = d.board % len(nodes)
	if d.chip.Spec().Galaxy() {
		node = d.addr.bus >> 7 % len(nodes)
	}
	return node, nodes[node]
}

// storeRemove is what writing to "remove" does.
func (d *Device) storeRemove(c tree.Caller, _ []byte) errno {
	d.driver.record(c, d, "write remove")
	go d.Unplug() // not from here: the kernel still holds the file being written
	return 0
}

func (d *Device) storeNothing(name string) func(tree.Caller, []byte) errno {
	return func(c tree.Caller, _ []byte) errno {
		d.driver.record(c, d, "write "+name)
		return 0
	}
}

// function is the device as the PCI core sees it.
func (d *Device) function() *function {
	spec := d.chip.Spec()
	f := &function{
		at: d.addr.dir(), vendor: 0x1E52, device: 0xB140, subVendor: 0x1E52, subDevice: uint16(spec.Code),
		class: 0x120000, irq: 64 + d.slot, bars: d.bars(), write: d.storeNothing,
	}
	if d.wormhole() {
		f.device, f.revision = 0x401E, 1
	}
	f.driver = func() string {
		if _, bound := d.Index(); bound {
			return "tenstorrent"
		}
		return ""
	}
	f.node, f.cpus = d.numa()
	f.link = func() (now, most link) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return link{d.linkGen, d.linkWidth}, link{spec.LinkGen, spec.LinkWidth}
	}
	f.dead = d.isDead
	f.file = func(name string, show func() string) *tree.File {
		return d.file(name, static, func() (string, errno) { return show(), 0 })
	}
	return f
}

// port is the root port that leads to the device.
func (d *Device) port() *function {
	rootBus, _ := strconv.ParseUint(d.addr.bridge[5:7], 16, 8)
	f := &function{
		at: "devices/" + d.addr.root + "/" + d.addr.bridge, vendor: 0x1022, device: 0x14AB, class: 0x060400,
		irq: 32 + d.slot, ports: &[2]uint8{uint8(rootBus), uint8(d.addr.bus)}, bars: d.bars(), driver: noDriver,
	}
	f.node, f.cpus = d.numa()
	f.link = func() (now, most link) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return link{d.linkGen, d.linkWidth}, link{5, 16}
	}
	return f
}

// findFunction is the function's directory, or nil if it is not there.
func (d *Device) findFunction() *tree.Dir { return d.driver.Root.Find("sys/" + d.addr.dir()) }

// appear makes /sys/devices/…/BDF with what the PCI core shows of it.
func (d *Device) appear() {
	d.plugged = true
	root := d.driver.Root
	if d.addr.bridge != "" && root.At("sys/bus/pci/devices").Get(d.addr.bridge) == nil {
		d.port().add(root)
	}
	bus := root.At("sys/devices").Dir(d.addr.root)
	if bus.Get("uevent") == nil {
		bus.Add("uevent", &tree.File{Mode: 0o644, Size: 4096, Show: func(tree.Caller) ([]byte, errno) { return nil, 0 }})
		bus.Add("power", powerFiles("auto", "unsupported"))
	}
	f := d.function()
	dir := f.add(root)
	if config, ok := dir.Get("config").(*tree.File); ok {
		config.OnOpen = d.opened("config")
	}
	dir.Add("remove", &tree.File{Mode: 0o220, Size: 4096, Store: d.storeRemove})
	dir.Add("rescan", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeNothing("rescan")})
	dir.Add("reset", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeNothing("reset")})
	dir.Add("reset_method", d.writableText("reset_method", "bus"))
	// A link to /sys/kernel/iommu_groups on a real host, which is not simulated.
	group := &tree.Dir{}
	group.Add("type", tree.Text("DMA-FQ"))
	dir.Add("iommu_group", group)
	for _, bar := range f.bars {
		n := "resource" + strconv.Itoa(bar.number)
		dir.Add(n, d.resourceFile(n, bar))
		dir.Add(n+"_wc", &tree.File{Mode: 0o600, Size: bar.size, OnOpen: d.opened(n + "_wc")})
	}
}

// noDriver is the driver of a function without one.
func noDriver() string { return "" }

func (d *Device) writableText(name, text string) *tree.File {
	f := d.constant(name, text)
	f.Mode, f.Store = 0o644, d.storeNothing(name)
	return f
}

// PCITable is the text of /proc/bus/pci/devices for the functions that are
// simulated.
func (d *Driver) PCITable() []byte {
	var text []byte
	for _, dev := range d.Devices() {
		if dev.addr.bridge != "" {
			text = append(text, dev.port().tableLine()...)
		}
		if dev.Plugged() {
			text = append(text, dev.function().tableLine()...)
		}
	}
	if d.sensor != nil {
		text = append(text, d.sensor.tableLine()...)
	}
	return text
}
