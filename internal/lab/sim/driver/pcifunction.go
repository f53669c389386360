package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// function is a PCI function: what the PCI core shows of it.
type function struct {
	at                   string // directory below /sys
	vendor, device       uint16
	subVendor, subDevice uint16
	class                uint32 // 24 bits
	revision             uint8
	irq                  int
	bars                 []bar
	ports                *[2]uint8     // of a bridge: the buses before and behind it
	driver               func() string // that has claimed it; empty: none
	node                 int
	cpus                 string
	link                 func() (now, most link) // nil: not PCI Express
	dead                 func() bool             // reads of the configuration space give all ones; nil: never

	// file makes a file that can be told to fail or to block; nil: no such
	// faults. write takes note of a write to a file.
	file  func(name string, show func() string) *tree.File
	write func(name string) func(tree.Caller, []byte) errno
}

// link is a PCIe link: generation and lanes.
type link struct{ gen, width int }

// bar is a memory window of a function: 64 bits wide, prefetchable.
type bar struct {
	number      int
	start, size uint64
}

// barBits are the low bits of such a window's register, barFlags what the
// kernel keeps of it.
const (
	barBits  = 0xC
	barFlags = 0x14220c
)

func (f *function) bdf() string { return path.Base(f.at) }

// modalias is by what udev finds a driver.
func (f *function) modalias() string {
	return fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X",
		f.vendor, f.device, f.subVendor, f.subDevice, f.class>>16, f.class>>8&0xFF, f.class&0xFF)
}

func (f *function) uevent() string {
	text := fmt.Sprintf("PCI_CLASS=%04X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s",
		f.class, f.vendor, f.device, f.subVendor, f.subDevice, f.bdf(), f.modalias())
	if name := f.driver(); name != "" {
		text = "DRIVER=" + name + "\n" + text
	}
	return text
}

// resources is the file of that name: start, end and flags of the six windows,
// the ROM and the bridge windows.
func (f *function) resources() string {
	lines := slices.Repeat([]string{"0x0000000000000000 0x0000000000000000 0x0000000000000000"}, 13)
	if f.ports == nil {
		for _, b := range f.bars {
			lines[b.number] = fmt.Sprintf("0x%016x 0x%016x 0x%016x", b.start, b.start+b.size-1, barFlags)
		}
	}
	return strings.Join(lines, "\n")
}

// tableLine is the function's line in /proc/bus/pci/devices.
func (f *function) tableLine() string {
	var domain, bus, dev, fn int
	fmt.Sscanf(f.bdf(), "%x:%x:%x.%x", &domain, &bus, &dev, &fn)
	var starts, sizes [7]uint64
	if f.ports == nil {
		for _, b := range f.bars {
			starts[b.number], sizes[b.number] = b.start|barBits, b.size
		}
	}
	line := fmt.Sprintf("%02x%02x\t%04x%04x\t%x", bus, dev<<3|fn, f.vendor, f.device, f.irq)
	for _, n := range slices.Concat(starts[:], sizes[:]) {
		line += fmt.Sprintf("\t%16x", n)
	}
	return line + "\t" + f.driver() + "\n"
}

// add makes the function's files, and its link in /sys/bus/pci/devices.
func (f *function) add(root *tree.Dir) *tree.Dir {
	sys := root.Dir("sys")
	dir := sys.At(f.at)
	show := f.file
	if show == nil {
		show = func(_ string, show func() string) *tree.File {
			return tree.Attr(func() ([]byte, syscall.Errno) { return []byte(show() + "\n"), 0 })
		}
	}
	for name, text := range f.texts() {
		file := show(name, text)
		if slices.Contains(writable, name) {
			file.Mode = 0o644
			if f.write != nil {
				file.Store = f.write(name)
			}
		}
		dir.Add(name, file)
	}
	dir.Add("config", f.configFile())
	dir.Add("power", powerFiles("on", "active"))
	dir.Add("subsystem", &tree.Link{Target: relative(f.at, "bus/pci")})
	sys.At("bus/pci/devices").Add(f.bdf(), &tree.Link{Target: relative("bus/pci/devices", f.at)})
	return dir
}

// writable are the files of a function that root may write.
var writable = []string{"broken_parity_status", "d3cold_allowed", "driver_override", "enable", "msi_bus", "numa_node", "reset_method", "uevent"}

// texts are the function's files of text.
func (f *function) texts() map[string]func() string {
	texts := f.linkTexts()
	for name, text := range f.constants() {
		texts[name] = func() string { return text }
	}
	claimed := func(yes, no string) func() string {
		return func() string {
			if f.driver() != "" {
				return yes
			}
			return no
		}
	}
	texts["uevent"] = f.uevent
	texts["enable"] = claimed("1", "0")
	texts["dma_mask_bits"], texts["consistent_dma_mask_bits"] = claimed("64", "32"), claimed("64", "32")
	return texts
}

// constants are the files that never change.
func (f *function) constants() map[string]string {
	hex := func(v uint16) string { return fmt.Sprintf("0x%04x", v) }
	texts := map[string]string{
		"vendor": hex(f.vendor), "device": hex(f.device), "subsystem_vendor": hex(f.subVendor), "subsystem_device": hex(f.subDevice),
		"class": fmt.Sprintf("0x%06x", f.class), "revision": fmt.Sprintf("0x%02x", f.revision),
		"irq": strconv.Itoa(f.irq), "ari_enabled": "0", "resource": f.resources(),
		"modalias": f.modalias(), "power_state": "D0",
		"broken_parity_status": "0", "d3cold_allowed": "1", "driver_override": "(null)", "msi_bus": "1",
		"numa_node": strconv.Itoa(f.node), "local_cpulist": f.cpus, "local_cpus": cpuMask(f.cpus),
	}
	if f.ports != nil {
		texts["secondary_bus_number"], texts["subordinate_bus_number"] = strconv.Itoa(int(f.ports[1])), strconv.Itoa(int(f.ports[1]))
	}
	if f.link != nil {
		for _, name := range []string{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"} {
			texts[name] = aerLines(name)
		}
	}
	return texts
}

// linkTexts are the files with the link, made by the kernel from what it reads
// in the configuration space: also from all ones.
func (f *function) linkTexts() map[string]func() string {
	if f.link == nil {
		return map[string]func() string{}
	}
	part := func(alive func(now, most link) string, ones string) func() string {
		return func() string {
			if f.dead != nil && f.dead() {
				return ones
			}
			return alive(f.link())
		}
	}
	return map[string]func() string{
		"current_link_speed": part(func(now, _ link) string { return linkSpeed(now.gen) }, "Unknown"),
		"current_link_width": part(func(now, _ link) string { return strconv.Itoa(now.width) }, "63"),
		"max_link_speed":     part(func(_, most link) string { return linkSpeed(most.gen) }, "64.0 GT/s PCIe"),
		"max_link_width":     part(func(_, most link) string { return strconv.Itoa(most.width) }, "63"),
	}
}

// headerSize is the part of the configuration space that everybody can read. What is
// behind it is not simulated.
const headerSize = 64

// configFile is the configuration space, which a monitor does not open: tools that list
// boards do.
func (f *function) configFile() *tree.File {
	file := &tree.File{Mode: 0o644, Size: headerSize, Binary: true, Show: func(tree.Caller) ([]byte, syscall.Errno) {
		if f.dead != nil && f.dead() {
			return bytes.Repeat([]byte{0xFF}, headerSize), 0
		}
		c := make([]byte, headerSize)
		binary.LittleEndian.PutUint16(c, f.vendor)
		binary.LittleEndian.PutUint16(c[0x02:], f.device)
		binary.LittleEndian.PutUint32(c[0x08:], f.class<<8|uint32(f.revision))
		if f.ports != nil {
			c[0x0E] = 1
			c[0x18], c[0x19], c[0x1A] = f.ports[0], f.ports[1], f.ports[1]
		} else {
			binary.LittleEndian.PutUint16(c[0x2C:], f.subVendor)
			binary.LittleEndian.PutUint16(c[0x2E:], f.subDevice)
		}
		return c, 0
	}}
	if f.write != nil {
		file.Store = f.write("config")
	}
	return file
}

// powerFiles are the runtime power management files that every device has.
func powerFiles(control, status string) *tree.Dir {
	dir := &tree.Dir{}
	for name, text := range map[string]string{
		"control": control, "runtime_status": status, "runtime_active_time": "0", "runtime_suspended_time": "0",
	} {
		dir.Add(name, tree.Text(text))
	}
	dir.Get("control").(*tree.File).Mode = 0o644
	// As the kernel answers for what does not use it.
	dir.Add("autosuspend_delay_ms", &tree.File{Mode: 0o644, Size: 4096, Show: func(tree.Caller) ([]byte, syscall.Errno) {
		return nil, syscall.EIO
	}})
	return dir
}

// cpuMask is a list of CPUs ("0-3,8") as the kernel prints masks: words of 32
// bits in hex, the highest first.
func cpuMask(list string) string {
	var words []uint32
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last > 1<<16 {
			continue
		}
		for cpu := first; cpu <= last; cpu++ {
			for len(words) <= cpu/32 {
				words = append(words, 0)
			}
			words[cpu/32] |= 1 << (cpu % 32)
		}
	}
	if len(words) == 0 {
		return "0"
	}
	text := fmt.Sprintf("%x", words[len(words)-1])
	for _, w := range slices.Backward(words[:len(words)-1]) {
		text += fmt.Sprintf(",%08x", w)
	}
	return text
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
