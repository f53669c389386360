package driver

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/sim/tree"
)

func splitPath(p string) []string { return strings.Split(p, "/") }
func upperHex(s string) string    { return strings.ToUpper(strings.TrimPrefix(s, "0x")) }

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
