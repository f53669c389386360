package kmd

import (
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// directory is the one that holds a file.
type directory uint8

const (
	inClass    directory = iota // /sys/class/tenstorrent/tenstorrent!N
	inHwmon                     // …/<bdf>/hwmon/hwmonX
	inPCI                       // …/<bdf>
	inParent                    // the port above, which limits the link
	inCounters                  // …/tenstorrent!N/pcie_perf_counters
	inProc                      // /proc/driver/tenstorrent/N
	numDirectories
)

// attr is one file of the driver or the PCI core, and how to decode it.
type attr struct {
	file   string
	in     directory
	role   role
	what   string // the thing, to say what is missing: "fan speed"
	wh, bh string // driver release that first offers it on that chip; "" never
	// store stores the content in the device, or the reason why there is none.
	store func(d *model.Device, c content) outcome
}

// outcome is the result of storing a content.
type outcome uint8

const (
	nothing outcome = iota // no value, or an impossible one
	valid                  // a value
	ones                   // what a dead chip gives
)

// role says how often a file is read and what it shows.
type role uint8

const (
	lifeSign role = iota // read every time, now and then even of a chip that seems dead
	vital                // read every time; not read while the chip seems dead
	moving               // read every time
	static               // changes only with a reset, a new firmware or a new slot
)

// content is what a file held, or why it held nothing.
type content struct {
	text   string
	status model.Status // Known if text holds
	why    string
	ones   bool // not read, since the chip answers with all ones
}

const heartbeatFile = "tt_heartbeat"

// fromFirmware reports whether the chip's firmware has to be alive for the file
// to hold something: such a file is a vital sign.
func (a *attr) fromFirmware() bool {
	return a.role <= vital && (a.in == inClass || a.in == inHwmon)
}

// attrs is every file that is read, in this order: first those of the PCI
// core, which answer without the chip, so that even of one that blocks every
// read it is known what it is; then the vital ones, so that a chip that blocks
// a later read has shown its state.
var attrs = [...]attr{
	{"vendor", inPCI, static, "vendor", "1.1", "1.1", pciID(func(d dev, n uint64) { d.PCIID.Vendor = uint16(n) })},
	{"device", inPCI, static, "device id", "1.1", "1.1", pciID(func(d dev, n uint64) {
		d.PCIID.Device, d.Arch = uint16(n), board.ArchOfPCI(uint16(n))
	})},
	{"max_link_speed", inPCI, static, "highest link speed", "1.1", "1.1", into(linkGen, func(d dev) *num { return &d.PCIe.GenMax })},
	{"max_link_width", inPCI, static, "highest link width", "1.1", "1.1", into(linkWidth, func(d dev) *num { return &d.PCIe.WidthMax })},
	{"max_link_speed", inParent, static, "link speed of the slot", "1.1", "1.1", into(linkGen, func(d dev) *num { return &d.PCIe.SlotGenMax })},
	{"max_link_width", inParent, static, "link width of the slot", "1.1", "1.1", into(linkWidth, func(d dev) *num { return &d.PCIe.SlotWidthMax })},
	{"numa_node", inPCI, static, "NUMA node", "1.1", "1.1", into(numaNode, func(d dev) *num { return &d.NUMANode })},
	{"local_cpulist", inPCI, static, "CPU affinity", "1.1", "1.1", into(cpuList, func(d dev) *text { return &d.CPUAffinity })},
	{"subsystem_vendor", inPCI, static, "subsystem vendor", "1.1", "1.1", pciID(func(d dev, n uint64) { d.PCIID.SubVendor = uint16(n) })},
	{"subsystem_device", inPCI, static, "subsystem device", "1.1", "1.1", pciID(func(d dev, n uint64) { d.PCIID.SubDevice = uint16(n) })},
	{"revision", inPCI, static, "revision", "1.1", "1.1", pciID(func(d dev, n uint64) { d.PCIID.Revision = uint8(n) })},
	{"current_link_speed", inPCI, moving, "link speed", "1.1", "1.1", into(linkGen, func(d dev) *num { return &d.PCIe.Gen })},
	{"current_link_width", inPCI, lifeSign, "link width", "1.1", "1.1", into(linkWidth, func(d dev) *num { return &d.PCIe.Width })},

	{heartbeatFile, inClass, lifeSign, "heartbeat", "2.7.0", "2.7.0", into(count, func(d dev) *u32 { return &d.Heartbeat })},
	{"tt_aiclk", inClass, lifeSign, "AI clock", "1.28", "1.32", into(measured(megahertz), func(d dev) *f64 { return &d.AICLK })},
	{"tt_axiclk", inClass, vital, "AXI clock", "1.28", "1.32", into(measured(megahertz), func(d dev) *f64 { return &d.AXICLK })},
	{"tt_arcclk", inClass, vital, "ARC clock", "1.28", "1.32", into(measured(megahertz), func(d dev) *f64 { return &d.ARCCLK })},
	{"tt_therm_trip_count", inClass, vital, "count of thermal trips", "", "2.7.0", into(count, func(d dev) *u32 { return &d.ThermalTrips })},
	{"temp1_input", inHwmon, vital, "temperature", "1.27", "1.32", into(temperature, func(d dev) *f64 { return &d.Temperature })},
	{"power1_input", inHwmon, vital, "power", "1.27", "1.32", into(measured(watts), func(d dev) *f64 { return &d.Power })},
	{"in0_input", inHwmon, vital, "voltage", "1.27", "1.32", into(measured(volts), func(d dev) *f64 { return &d.Voltage })},
	{"curr1_input", inHwmon, vital, "current", "1.27", "1.32", into(measured(amperes), func(d dev) *f64 { return &d.Current })},
	{"fan1_input", inHwmon, moving, "fan speed", "", "2.0.0", into(measured(rpm), func(d dev) *f64 { return &d.Fan })},

	{"temp1_max", inHwmon, static, "temperature limit", "1.27", "2.9.0", into(limit(degrees), func(d dev) *f64 { return &d.TemperatureLimit })},
	{"power1_max", inHwmon, static, "power limit", "1.27", "2.9.0", into(limit(watts), func(d dev) *f64 { return &d.PowerLimit })},
	{"in0_max", inHwmon, static, "voltage limit", "1.27", "2.9.0", into(limit(volts), func(d dev) *f64 { return &d.VoltageLimit })},
	{"curr1_max", inHwmon, static, "current limit", "1.27", "2.9.0", into(limit(amperes), func(d dev) *f64 { return &d.CurrentLimit })},
	{"tt_card_type", inClass, static, "board type", "1.28", "1.32", intoIdentity(cardType, func(d dev) *text { return &d.Board })},
	{"tt_serial", inClass, static, "serial number", "1.28", "1.32", intoIdentity(hexID, func(d dev) *text { return &d.Serial })},
	{"tt_asic_id", inClass, static, "ASIC id", "2.3.0", "2.1.0", intoIdentity(hexID, func(d dev) *text { return &d.ASICID })},
	{"tt_fw_bundle_ver", inClass, static, "firmware bundle version", "1.29", "1.32", into(dotted(4, onesVersion), func(d dev) *text { return &d.Firmware.Bundle })},
	{"tt_arc_fw_ver", inClass, static, "ARC firmware version", "1.28", "", into(dotted(4, onesVersion), func(d dev) *text { return &d.Firmware.ARC })},
	{"tt_eth_fw_ver", inClass, static, "Ethernet firmware version", "1.28", "", into(dotted(3, onesETH), func(d dev) *text { return &d.Firmware.ETH })},
	{"tt_m3app_fw_ver", inClass, static, "M3 application version", "1.28", "1.32", into(dotted(4, onesVersion), func(d dev) *text { return &d.Firmware.M3App })},
	{"tt_m3bl_fw_ver", inClass, static, "M3 bootloader version", "1.28", "", into(dotted(4, onesVersion), func(d dev) *text { return &d.Firmware.M3Bootloader })},
	{"tt_ttflash_ver", inClass, static, "tt-flash version", "1.28", "", into(dotted(4, onesVersion), func(d dev) *text { return &d.Firmware.TTFlash })},
}

// Files that the judgement of others depends on.
var (
	widthAt     = attrAt(inPCI, "current_link_width")
	widthMaxAt  = attrAt(inPCI, "max_link_width")
	slotWidthAt = attrAt(inParent, "max_link_width")
	fanAt       = attrAt(inHwmon, "fan1_input")
)

// attrAt is where a file is in the table.
func attrAt(in directory, file string) int {
	for i := range attrs {
		if attrs[i].in == in && attrs[i].file == file {
			return i
		}
	}
	panic("BUG: " + file + " is not in the table of files")
}

// Short names for the table above.
type (
	dev  = *model.Device
	f64  = model.Reading[float64]
	u32  = model.Reading[uint32]
	num  = model.Reading[int]
	text = model.Reading[string]
)

// into returns a store function that decodes a file into one reading of the
// device.
func into[T any](decode func(string) decoded[T], field func(dev) *model.Reading[T]) func(dev, content) outcome {
	return func(d dev, c content) outcome {
		if c.status != model.Known {
			*field(d) = model.Missing[T](c.status, c.why)
			return nothing
		}
		v := decode(c.text)
		*field(d) = v.reading
		switch {
		case v.ones:
			return ones
		case v.reading.Known():
			return valid
		}
		return nothing
	}
}

// intoIdentity is into for what a chip cannot change while it is plugged in:
// once known, it stays known through resets and hangs.
func intoIdentity(decode func(string) decoded[string], field func(dev) *text) func(dev, content) outcome {
	put := into(decode, field)
	return func(d dev, c content) outcome {
		before := *field(d)
		got := put(d, c)
		if s := field(d).Status; before.Known() && (s == model.Resetting || s == model.Hung || s == model.Lost) {
			*field(d) = before
		}
		return got
	}
}

// pciID returns a store function for the PCI core's hexadecimal ids, which are
// plain numbers in the model: a device without them would not be on the bus.
func pciID(set func(dev, uint64)) func(dev, content) outcome {
	return func(d dev, c content) outcome {
		n, err := strconv.ParseUint(strings.TrimPrefix(c.text, "0x"), 16, 16)
		if err != nil {
			return nothing
		}
		set(d, n)
		return valid
	}
}

// absent returns why a file is missing.
func (a *attr) absent(arch model.Arch, driver Version) string {
	since := a.wh
	if arch == model.Blackhole {
		since = a.bh
	}
	if a.in == inPCI || a.in == inParent {
		return "the kernel shows no " + a.what
	}
	if since == "" {
		return "the driver offers no " + a.what + " on " + string(arch)
	}
	if v, ok := ParseVersion(since); ok && driver.Less(v) && driver != (Version{}) {
		return "driver " + driver.String() + " offers no " + a.what + " on " + string(arch) + ", " + since + " does"
	}
	if a.in == inHwmon {
		return "the firmware gives the driver no " + a.what
	}
	return "the firmware publishes no " + a.what
}
