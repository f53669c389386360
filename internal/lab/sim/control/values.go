package control

import (
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"golang.org/x/sys/unix"
)

var valueVerbs = []Verb{{
	Name: "load", Usage: "DEVICE 0..1", Short: "give a device work; power, temperature, clock and traffic follow",
	device: func(a *arguments) onDevice {
		load := a.float("LOAD", 0, 1)
		return func(d *driver.Device) error { d.SetLoad(load); return nil }
	},
}, {
	Name: "ambient", Usage: "DEVICE CELSIUS", Short: "set the temperature of the air (27 at first); hot enough, a loaded chip throttles",
	device: func(a *arguments) onDevice {
		celsius := a.float("CELSIUS", -100, 150)
		return func(d *driver.Device) error { d.Chip().SetAmbient(celsius); return nil }
	},
}, {
	Name: "traffic", Usage: "DEVICE to=BYTES/S from=BYTES/S | DEVICE auto", Short: "fix the PCIe traffic, so that rates are known exactly",
	device: func(a *arguments) onDevice {
		to, from := -1.0, -1.0
		if !a.flag("auto") {
			to, from = a.rate("to"), a.rate("from")
		}
		return func(d *driver.Device) error { d.Chip().SetTraffic(to, from); return nil }
	},
}, {
	Name: "set", Usage: "DEVICE FILE TEXT…", Short: "make a file print TEXT instead of its value",
	Long: "FILE is a name in the class device, hwmon or PCI directory: temp1_input,\ntt_aiclk, numa_node. A temperature of -4.5 °C is 65531500.",
	device: func(a *arguments) onDevice {
		file := a.word("FILE")
		text := a.text()
		return func(d *driver.Device) error { return d.SetText(file, text) }
	},
}, {
	Name: "fail", Usage: "DEVICE FILE ERRNO", Short: "make reads of a file fail: ENODATA, EINVAL, EIO, …",
	device: func(a *arguments) onDevice {
		file := a.word("FILE")
		name := a.word("ERRNO")
		e := errnoOf(name)
		if e == 0 {
			a.fail("%q is not the name of an error such as ENODATA", name)
		}
		return func(d *driver.Device) error { return d.SetError(file, e) }
	},
}, {
	Name: "clear", Usage: "DEVICE [FILE]", Short: "undo set and fail",
	device: func(a *arguments) onDevice {
		file := a.optional()
		return func(d *driver.Device) error { d.Clear(file); return nil }
	},
}, {
	Name: "word", Usage: "DEVICE TAG VALUE|clear", Short: "fix a word of the firmware's telemetry table, for the driver to print",
	Long: "TAG is the tag's number, VALUE a 32-bit number (0x… for hexadecimal). Tag 11\nis the temperature in 1/65536 °C.",
	device: func(a *arguments) onDevice {
		tags := each(a, []string{a.word("TAG")}, chip.ParseTag)
		if a.flag("clear") {
			return func(d *driver.Device) error { d.Chip().ClearWord(tags[0]); return nil }
		}
		value := a.uint32("VALUE")
		return func(d *driver.Device) error { d.Chip().SetWord(tags[0], value); return nil }
	},
}, {
	Name: "counters", Usage: "DEVICE [FILE] VALUE", Short: "set PCIe counters; 4294967290 is just before the wrap, 0 a restart",
	device: func(a *arguments) onDevice {
		file := ""
		if len(a.rest) > 1 {
			file = a.word("FILE")
		}
		value := a.uint32("VALUE")
		return func(d *driver.Device) error { return d.SetCounter(file, value) }
	},
}, {
	Name: "link", Usage: "DEVICE gen=G width=W", Short: "train the PCIe link down, or up again",
	device: func(a *arguments) onDevice {
		gen, width := a.number("gen", 0), a.number("width", 0)
		return func(d *driver.Device) error { return d.SetLink(gen, width) }
	},
}, {
	Name: "freeze", Usage: "[off]", Short: "freeze all values except heartbeats, or unfreeze them",
	host: func(a *arguments) onHost {
		off := a.flag("off")
		return func(h *Host) (string, error) { h.Driver.Freeze(!off); return "", nil }
	},
}, {
	Name: "advance", Usage: "TIME", Short: "advance the chips' clock by TIME at once",
	host: func(a *arguments) onHost {
		text := a.word("TIME")
		by, err := time.ParseDuration(text)
		if err != nil || by < 0 || by > 24*time.Hour {
			a.fail("%q is not a time such as 10s, of at most 24h", text)
		}
		return func(h *Host) (string, error) { h.Driver.Advance(by); return "", nil }
	},
}}

// errnoOf is an error by its name; 0 if there is none.
func errnoOf(name string) syscall.Errno {
	for e := syscall.Errno(1); e < 134; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}
