package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/sim/tree"
)

func splitPath(p string) []string { return strings.Split(p, "/") }

// bar is a memory window of the function.
type bar struct {
	number int
	size   uint64
}

func (d *Device) bars() []bar {
	big := uint64(32 << 30)
	if d.wormhole() {
		big = 32 << 20
	}
	return []bar{{0, 512 << 20}, {2, 1 << 20}, {4, big}}
}

// resources is the PCI file of that name: start, end and flags of the six
// windows, the ROM and the bridge windows.
func (d *Device) resources() string {
	lines := make([]string, 13)
	for i := range lines {
		lines[i] = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
	}
	base := uint64(0x20_0000_0000) + uint64(d.slot)<<36
	for _, b := range d.bars() {
		lines[b.number] = fmt.Sprintf("0x%016x 0x%016x 0x%016x", base, base+b.size-1, 0x14220c)
		base += max(b.size, 1<<30)
	}
	return strings.Join(lines, "\n")
}

// aerLines is an error statistics file of the PCI core without errors.
func aerLines(name string) string {
	rows, total := []string{"Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UnsupReq", "ACSViol"}, "TOTAL_ERR_FATAL"
	switch name {
	case "aer_dev_correctable":
		rows, total = []string{"RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF"}, "TOTAL_ERR_COR"
	case "aer_dev_nonfatal":
		total = "TOTAL_ERR_NONFATAL"
	}
	return strings.Join(append(rows, total), " 0\n") + " 0"
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

// pciDir makes a PCI function's directory with the files all have, and its
// link in /sys/bus/pci/devices.
func (d *Driver) pciDir(at, vendor, device, class string) *tree.Dir {
	sys := d.Root.Dir("sys")
	dir := sys
	parts := splitPath(at)
	for _, p := range parts {
		dir = dir.Dir(p)
	}
	for name, text := range map[string]string{
		"vendor": vendor, "device": device, "class": class, "revision": "0x00",
		"subsystem_vendor": vendor, "subsystem_device": "0x0000", "irq": "0", "enable": "1",
	} {
		dir.Add(name, tree.Text(text))
	}
	power := dir.Dir("power")
	power.Add("control", tree.Text("on"))
	power.Add("runtime_status", tree.Text("active"))
	dir.Add("subsystem", &tree.Link{Target: relative(at, "bus/pci")})
	bdf := parts[len(parts)-1]
	dir.Add("uevent", tree.Text("PCI_SLOT_NAME="+bdf))
	sys.Dir("bus").Dir("pci").Dir("devices").Add(bdf, &tree.Link{Target: relative("bus/pci/devices", at)})
	return dir
}

// findFunction is the function's directory if it is there.
func (d *Device) findFunction() *tree.Dir {
	dir := d.driver.Root.Dir("sys")
	for _, p := range splitPath(d.addr.dir()) {
		sub, ok := dir.Get(p).(*tree.Dir)
		if !ok {
			return nil
		}
		dir = sub
	}
	return dir
}

// appear makes /sys/devices/…/BDF with what the PCI core shows of it.
func (d *Device) appear() {
	d.plugged = true
	if d.addr.bridge != "" {
		bridgeDir := "devices/" + d.addr.root + "/" + d.addr.bridge
		if d.driver.Root.Dir("sys").Dir("bus").Dir("pci").Dir("devices").Get(d.addr.bridge) == nil {
			d.driver.pciDir(bridgeDir, "0x1022", "0x14ab", "0x060400")
		}
	}
	spec := d.chip.Spec()
	devID, rev := "0xb140", "0x00"
	if d.wormhole() {
		devID, rev = "0x401e", "0x01"
	}
	dir := d.driver.pciDir(d.addr.dir(), "0x1e52", devID, "0x120000")
	node, cpus := d.numa()
	texts := map[string]string{
		"vendor": "0x1e52", "device": devID, "class": "0x120000", "revision": rev,
		"subsystem_vendor": "0x1e52", "subsystem_device": fmt.Sprintf("0x%04x", spec.Code),
		"numa_node": strconv.Itoa(node), "local_cpulist": cpus,
		"max_link_speed": linkSpeed(spec.LinkGen), "max_link_width": strconv.Itoa(spec.LinkWidth),
		"resource": d.resources(), "irq": strconv.Itoa(64 + d.slot), "enable": "1", "ari_enabled": "0",
		"modalias": fmt.Sprintf("pci:v00001E52d0000%sv00001E52sd%08Xbc12sc00i00", devID[2:], spec.Code),
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		dir.Add(name, d.constant(name, texts[name]))
	}
	for _, name := range []string{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"} {
		dir.Add(name, d.constant(name, aerLines(name)))
	}
	dir.Add("current_link_speed", d.file("current_link_speed", static, func() (string, errno) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return linkSpeed(d.linkGen), 0
	}))
	dir.Add("current_link_width", d.file("current_link_width", static, func() (string, errno) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return strconv.Itoa(d.linkWidth), 0
	}))
	dir.Add("uevent", tree.Text(d.pciEvent()))
	dir.Add("remove", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeRemove})
	dir.Add("rescan", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeNothing("rescan")})
	for _, bar := range d.bars() {
		dir.Add("resource"+strconv.Itoa(bar.number), &tree.File{Mode: 0o600, Size: bar.size})
	}
}

// pciEvent is the function's uevent, but for the driver's line.
func (d *Device) pciEvent() string {
	id := uint16(0xB140)
	if d.wormhole() {
		id = 0x401E
	}
	return fmt.Sprintf("PCI_CLASS=120000\nPCI_ID=1E52:%04X\nPCI_SUBSYS_ID=1E52:%04X\nPCI_SLOT_NAME=%s", id, d.chip.Spec().Code, d.BDF())
}
