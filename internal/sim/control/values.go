package control

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/driver"
	"golang.org/x/sys/unix"
)

var valueVerbs = []Verb{{
	Name: "load", Usage: "DEVICE 0..1", Short: "give a device work; power, temperature, clock and traffic follow",
	run: func(h *Host, a *arguments) (string, error) {
		devs, load := a.devices(h), a.float("LOAD", 0, 1)
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.SetLoad(load); return nil })
	},
}, {
	Name: "ambient", Usage: "DEVICE CELSIUS", Short: "set the temperature of the air (27 at first); hot enough, a loaded chip throttles",
	run: func(h *Host, a *arguments) (string, error) {
		devs, celsius := a.devices(h), a.float("CELSIUS", -100, 150)
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.SetAmbient(celsius); return nil })
	},
}, {
	Name: "traffic", Usage: "DEVICE to=BYTES/S from=BYTES/S | DEVICE auto", Short: "fix the PCIe traffic, so that rates are known exactly",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		to, from := -1.0, -1.0
		if !a.flag("auto") {
			to, from = a.rate("to"), a.rate("from")
		}
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.SetTraffic(to, from); return nil })
	},
}, {
	Name: "set", Usage: "DEVICE FILE TEXT…", Short: "make a file print TEXT instead of its value",
	Long: "FILE is a name in the class device, hwmon or PCI directory: temp1_input,\ntt_aiclk, numa_node. A temperature of -4.5 °C is 65531500.",
	run: func(h *Host, a *arguments) (string, error) {
		devs, file := a.devices(h), a.word("FILE")
		text := strings.Join(a.rest, " ")
		if a.err != nil {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.SetText(file, text) })
	},
}, {
	Name: "fail", live: true, Usage: "DEVICE FILE ERRNO", Short: "make reads of a file fail: ENODATA, EINVAL, EIO, …",
	run: func(h *Host, a *arguments) (string, error) {
		devs, file := a.devices(h), a.word("FILE")
		name := a.word("ERRNO")
		e := errnoOf(name)
		if e == 0 && a.err == nil {
			a.fail("%q is not the name of an error such as ENODATA", name)
		}
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.SetError(file, e) })
	},
}, {
	Name: "clear", Usage: "DEVICE [FILE]", Short: "undo set and fail",
	run: func(h *Host, a *arguments) (string, error) {
		devs, file := a.devices(h), a.optional()
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.Clear(file); return nil })
	},
}, {
	Name: "word", Usage: "DEVICE TAG VALUE|clear", Short: "fix a word of the firmware's telemetry table, for the driver to print",
	Long: "TAG is the tag's number, VALUE a 32-bit number (0x… for hexadecimal). Tag 11\nis the temperature in 1/65536 °C.",
	run: func(h *Host, a *arguments) (string, error) {
		devs, tag := a.devices(h), a.tag()
		if a.flag("clear") {
			if !a.done() {
				return "", nil
			}
			return each(devs, func(d *driver.Device) error { d.Chip().ClearWord(tag); return nil })
		}
		value := a.uint32("VALUE")
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.Chip().SetWord(tag, value); return nil })
	},
}, {
	Name: "counters", Usage: "DEVICE [FILE] VALUE", Short: "set PCIe counters; 4294967290 is just before the wrap, 0 a restart",
	run: func(h *Host, a *arguments) (string, error) {
		devs, file := a.devices(h), ""
		if len(a.rest) > 1 {
			file = a.word("FILE")
		}
		value := a.uint32("VALUE")
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.SetCounter(file, value) })
	},
}, {
	Name: "link", Usage: "DEVICE gen=G width=W", Short: "train the PCIe link down, or up again",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		gen, width := a.int("gen"), a.int("width")
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.SetLink(gen, width) })
	},
}, {
	Name: "freeze", Usage: "[off]", Short: "freeze all values except heartbeats, or unfreeze them",
	run: func(h *Host, a *arguments) (string, error) {
		off := a.flag("off")
		if a.done() {
			h.Driver.Freeze(!off)
		}
		return "", nil
	},
}, {
	Name: "advance", Usage: "TIME", Short: "advance the chips' clock by TIME at once",
	run: func(h *Host, a *arguments) (string, error) {
		text := a.word("TIME")
		by, err := time.ParseDuration(text)
		if a.err == nil && (err != nil || by < 0 || by > 24*time.Hour) {
			a.fail("%q is not a time such as 10s, of at most 24h", text)
		}
		if a.done() {
			h.Driver.Advance(by)
		}
		return "", nil
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

func (a *arguments) float(what string, low, high float64) float64 {
	text := a.word(what)
	f, err := strconv.ParseFloat(text, 64)
	if a.err == nil && (err != nil || !(f >= low && f <= high)) {
		a.fail("%s %q is not a number from %v to %v", what, text, low, high)
	}
	return f
}

// rate takes key=1.2e9.
func (a *arguments) rate(key string) float64 {
	text, ok := a.setting(key)
	if !ok {
		a.fail("%s= is missing", key)
		return 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		a.fail("%s=%s is not a number of bytes per second", key, text)
	}
	return f
}

func (a *arguments) int(key string) int {
	text, ok := a.setting(key)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		a.fail("%s= needs a number", key)
	}
	return n
}

func (a *arguments) uint32(what string) uint32 {
	text := a.word(what)
	n, err := strconv.ParseUint(text, 0, 32)
	if a.err == nil && err != nil {
		a.fail("%s %q is not a 32-bit number", what, text)
	}
	return uint32(n)
}

func (a *arguments) tag() chip.Tag {
	text := a.word("TAG")
	if a.err != nil {
		return 0
	}
	tag, err := chip.ParseTag(text)
	if err != nil {
		a.fail("%w", err)
	}
	return tag
}

// number is a setting that may be missing.
func (a *arguments) number(key string, otherwise int) int {
	text, ok := a.setting(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		a.fail("%s=%s is not a number", key, text)
	}
	return n
}

var errNothing = fmt.Errorf("nothing was blocked")
