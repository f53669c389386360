package control

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/driver"
)

var faultVerbs = []Verb{{
	Name: "reset", live: true, Usage: "DEVICE [block=TIME] [window=TIME|forever] [fail]",
	Short: "reset a chip, as a reset tool does",
	Long: `Reads of telemetry block while the reset executes (block=1s), then fail with
ENODATA until the post-reset step (window=1s), then work, with counters and
heartbeat started again. window=forever is a tool that died on the way: see
post-reset. With fail the chip stays off the bus (all ones). Drivers before
2.9 neither block nor fail: they read all ones meanwhile.`,
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		block, window, fails := a.duration("block", time.Second), a.duration("window", time.Second), a.flag("fail")
		if block == driver.Forever {
			a.fail("block=forever: use the block command for that")
		}
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.Reset(block, window, fails) })
	},
}, {
	Name: "post-reset", live: true, Usage: "DEVICE [fail]", Short: "do the step that ends a reset's window",
	run: func(h *Host, a *arguments) (string, error) {
		devs, fails := a.devices(h), a.flag("fail")
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.PostReset(fails) })
	},
}, {
	Name: "block", live: true, Usage: "DEVICE [FILE|telemetry|counters|everything] [for=TIME]",
	Short: "hold up reads, uninterruptibly, until release or for a time",
	Long:  "Without a name, telemetry: what a stuck chip holds up. FILE may be any file\nof the device, and pids.",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		t, name := a.duration("for", driver.Forever), a.optional()
		if name == "" {
			name = "telemetry"
		}
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { return d.Block(name, t) })
	},
}, {
	Name: "release", live: true, Usage: "DEVICE [FILE|telemetry|counters|everything]", Short: "let blocked reads continue",
	run: func(h *Host, a *arguments) (string, error) {
		devs, name := a.devices(h), a.optional()
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error {
			if !d.Unblock(name) && len(devs) == 1 {
				return errNothing
			}
			return nil
		})
	},
}, {
	Name: "dead", Usage: "DEVICE", Short: "take a chip off the bus: no error, all ones everywhere",
	run: simple(func(d *driver.Device) error { d.SetDead(true); return nil }),
}, {
	Name: "alive", Usage: "DEVICE", Short: "put a dead chip back",
	run: simple(func(d *driver.Device) error { d.SetDead(false); return nil }),
}, {
	Name: "hang", Usage: "DEVICE", Short: "stop the firmware: heartbeat and values freeze, PCIe counters keep counting",
	run: simple(func(d *driver.Device) error { d.Hang(); return nil }),
}, {
	Name: "unhang", Usage: "DEVICE", Short: "let hung firmware continue",
	run: simple(func(d *driver.Device) error { d.Unhang(); return nil }),
}, {
	Name: "cut", Usage: "DEVICE CHANNEL…", Short: "take Ethernet links of a chip down, as a pulled cable or a failed training does",
	Long: "CHANNEL is UMD's number. The other end keeps its own state: cut it there, too.",
	run: func(h *Host, a *arguments) (string, error) {
		return onLinks(h, a, func(c *chip.Chip, n int) bool { return c.CutLink(n, true) })
	},
}, {
	Name: "join", Usage: "DEVICE CHANNEL…", Short: "let Ethernet links that were cut come up again",
	Long: "Each of them has trained again then.",
	run: func(h *Host, a *arguments) (string, error) {
		return onLinks(h, a, func(c *chip.Chip, n int) bool { return c.CutLink(n, false) })
	},
}, {
	Name: "retrain", Usage: "DEVICE CHANNEL…", Short: "let Ethernet links of a chip train again, after codewords that could not be corrected",
	Long: "ttmond reads the counters with --firmware full, while a program of tt-metal has the device\nopen.",
	run:  func(h *Host, a *arguments) (string, error) { return onLinks(h, a, (*chip.Chip).Retrain) },
}, {
	Name: "dispatch", Usage: "DEVICE SHARE|off", Short: "let tt-metal's dispatch cores account for programs that run for a share of the time",
	Long: "SHARE is from 0 to 1, whatever the workloads report themselves; off is what a program\nleaves that has closed the device. ttmond reads it with --firmware full.",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		if len(a.rest) == 1 && a.rest[0] == "off" {
			return each(devs, func(d *driver.Device) error { d.EndWork(); return nil })
		}
		share := a.float("SHARE", 0, 1)
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.Work(share); return nil })
	},
}, {
	Name: "log", Usage: "DEVICE [level=N] TEXT…", Short: "write a line into the kernel's log, as driver and firmware do",
	Long: "TEXT that begins with \"SMC: \" or \"DMC: \" is the chip's own firmware's. N is the\nkernel's level, from 0 (emergency) to 7 (debug); 4 is a warning, and the default.",
	run: func(h *Host, a *arguments) (string, error) {
		devs, level := a.devices(h), a.number("level", 4)
		text := strings.Join(a.rest, " ")
		if level > 7 || text == "" {
			a.fail("a level up to 7 and a text are needed")
		}
		if a.err != nil {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.Log(level, text); return nil })
	},
}, {
	Name: "drop", Usage: "DEVICE FILE…", Short: "remove files, as if the firmware had lacked their tags when the driver bound",
	Long: "Binding again (unplug, plug) brings them back.",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		files := append([]string{a.word("FILE")}, a.rest...)
		if a.err != nil {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error {
			for _, f := range files {
				if err := d.Drop(f); err != nil {
					return err
				}
			}
			return nil
		})
	},
}, {
	Name: "omit", Usage: "DEVICE TAG…", Short: "let the firmware stop publishing tags: their files stay and fail with ENODATA",
	run: func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		tags := []chip.Tag{a.tag()}
		for len(a.rest) > 0 && a.err == nil {
			tags = append(tags, a.tag())
		}
		if a.err != nil {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error {
			f := d.Chip().Firmware()
			f.Omit = append(f.Omit[:len(f.Omit):len(f.Omit)], tags...)
			d.Chip().SetFirmware(f)
			return nil
		})
	},
}, {
	Name: "firmware", Usage: "DEVICE FIRMWARE", Short: "flash other firmware; files come and go when the driver next binds",
	Long: "FIRMWARE is what --firmware takes: 18.4.0, no-telemetry, labels-only, fanless,\nomit=TAG+TAG, in a comma-separated list.",
	run: func(h *Host, a *arguments) (string, error) {
		devs, text := a.devices(h), a.word("FIRMWARE")
		f, err := chip.ParseFirmware(text)
		if err != nil && a.err == nil {
			return "", err
		}
		if !a.done() {
			return "", nil
		}
		return each(devs, func(d *driver.Device) error { d.Chip().SetFirmware(f); return nil })
	},
}}

func onLinks(h *Host, a *arguments, do func(c *chip.Chip, channel int) bool) (string, error) {
	devs := a.devices(h)
	var channels []int
	for a.err == nil && (len(channels) == 0 || len(a.rest) > 0) {
		text := a.word("CHANNEL")
		n, err := strconv.Atoi(text)
		if a.err == nil && err != nil {
			a.fail("%q is not a channel", text)
		}
		channels = append(channels, n)
	}
	if !a.done() {
		return "", nil
	}
	return each(devs, func(d *driver.Device) error {
		for _, c := range channels {
			if !do(d.Chip(), c) {
				return fmt.Errorf("device %s has no Ethernet channel %d", d.BDF(), c)
			}
		}
		return nil
	})
}

// simple is a verb that takes a device and nothing else.
func simple(f func(*driver.Device) error) func(*Host, *arguments) (string, error) {
	return func(h *Host, a *arguments) (string, error) {
		devs := a.devices(h)
		if !a.done() {
			return "", nil
		}
		return each(devs, f)
	}
}
