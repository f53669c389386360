package control

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
)

var faultVerbs = []Verb{{
	Name: "reset", Usage: "DEVICE [block=TIME] [window=TIME|forever] [fail]",
	Short: "reset a chip, as a reset tool does",
	Long: `Reads of telemetry block while the reset executes (block=1s), then fail with
ENODATA until the post-reset step (window=1s), then work, with counters and
heartbeat started again. window=forever is a tool that died on the way: see
post-reset. With fail the chip stays off the bus (all ones). Drivers before
2.9 neither block nor fail: they read all ones meanwhile.`,
	device: func(a *arguments) onDevice {
		block, window, fails := a.duration("block", time.Second), a.duration("window", time.Second), a.flag("fail")
		if block == driver.Forever {
			a.fail("block=forever: use the block command for that")
		}
		return func(d *driver.Device) error { return d.Reset(block, window, fails) }
	},
}, {
	Name: "post-reset", Usage: "DEVICE [fail]", Short: "do the step that ends a reset's window",
	device: func(a *arguments) onDevice {
		fails := a.flag("fail")
		return func(d *driver.Device) error { return d.PostReset(fails) }
	},
}, {
	Name: "block", Usage: "DEVICE [FILE|telemetry|counters|everything] [for=TIME]",
	Short: "hold up reads, uninterruptibly, until release or for a time",
	Long:  "Without a name, telemetry: what a stuck chip holds up. FILE may be any file\nof the device, and pids.",
	device: func(a *arguments) onDevice {
		t, name := a.duration("for", driver.Forever), a.optional()
		if name == "" {
			name = "telemetry"
		}
		return func(d *driver.Device) error { return d.Block(name, t) }
	},
}, {
	Name: "release", Usage: "DEVICE [FILE|telemetry|counters|everything]", Short: "let blocked reads continue",
	device: func(a *arguments) onDevice {
		name := a.optional()
		return func(d *driver.Device) error {
			if !d.Unblock(name) && !a.all {
				return errors.New("nothing was blocked")
			}
			return nil
		}
	},
}, {
	Name: "dead", Usage: "DEVICE", Short: "take a chip off the bus: no error, all ones everywhere",
	device: simple(func(d *driver.Device) error { d.SetDead(true); return nil }),
}, {
	Name: "alive", Usage: "DEVICE", Short: "put a dead chip back",
	device: simple(func(d *driver.Device) error { d.SetDead(false); return nil }),
}, {
	Name: "hang", Usage: "DEVICE", Short: "stop the firmware: heartbeat and values freeze, PCIe counters keep counting",
	device: simple(func(d *driver.Device) error { d.Chip().Hang(); return nil }),
}, {
	Name: "unhang", Usage: "DEVICE", Short: "let hung firmware continue",
	device: simple(func(d *driver.Device) error { d.Chip().Unhang(); return nil }),
}, {
	Name: "cut", Usage: "DEVICE CHANNEL…", Short: "take Ethernet links of a chip down, as a pulled cable or a failed training does",
	Long:   "CHANNEL is UMD's number. The other end keeps its own state: cut it there, too.",
	device: onLinks(func(c *chip.Chip, n int) bool { return c.CutLink(n, true) }),
}, {
	Name: "join", Usage: "DEVICE CHANNEL…", Short: "let Ethernet links that were cut come up again",
	Long:   "Each of them has trained again then.",
	device: onLinks(func(c *chip.Chip, n int) bool { return c.CutLink(n, false) }),
}, {
	Name: "retrain", Usage: "DEVICE CHANNEL…", Short: "let Ethernet links of a chip train again, after codewords that could not be corrected",
	Long:   "ttmond reads the counters with --firmware full, while a program of tt-metal has the device\nopen.",
	device: onLinks((*chip.Chip).Retrain),
}, {
	Name: "dispatch", Usage: "DEVICE SHARE|off", Short: "let tt-metal's dispatch cores account for programs that run for a share of the time",
	Long: "SHARE is from 0 to 1, whatever the workloads report themselves; off is what a program\nleaves that has closed the device. ttmond reads it with --firmware full.",
	device: func(a *arguments) onDevice {
		if a.flag("off") {
			return func(d *driver.Device) error { d.EndWork(); return nil }
		}
		share := a.float("SHARE", 0, 1)
		return func(d *driver.Device) error { d.Work(share); return nil }
	},
}, {
	Name: "log", Usage: "DEVICE [level=N] TEXT…", Short: "write a line into the kernel's log, as driver and firmware do",
	Long: "TEXT that begins with \"SMC: \" or \"DMC: \" is the chip's own firmware's. N is the\nkernel's level, from 0 (emergency) to 7 (debug); 4 is a warning, and the default.",
	device: func(a *arguments) onDevice {
		level := a.number("level", 4)
		text := a.text()
		if level > 7 || text == "" {
			a.fail("a level up to 7 and a text are needed")
		}
		return func(d *driver.Device) error { d.Log(level, text); return nil }
	},
}, {
	Name: "drop", Usage: "DEVICE FILE…", Short: "remove files, as if the firmware had lacked their tags when the driver bound",
	Long: "Binding again (unplug, plug) brings them back.",
	device: func(a *arguments) onDevice {
		files := a.words("FILE")
		return func(d *driver.Device) error {
			for _, f := range files {
				if err := d.Drop(f); err != nil {
					return err
				}
			}
			return nil
		}
	},
}, {
	Name: "omit", Usage: "DEVICE TAG…", Short: "let the firmware stop publishing tags: their files stay and fail with ENODATA",
	device: func(a *arguments) onDevice {
		tags := each(a, a.words("TAG"), chip.ParseTag)
		return func(d *driver.Device) error {
			f := d.Chip().Firmware()
			f.Omit = append(f.Omit[:len(f.Omit):len(f.Omit)], tags...)
			d.Chip().SetFirmware(f)
			return nil
		}
	},
}, {
	Name: "firmware", Usage: "DEVICE FIRMWARE", Short: "flash other firmware; files come and go when the driver next binds",
	Long: "FIRMWARE is what --firmware takes: 18.4.0, no-telemetry, labels-only, fanless,\nomit=TAG+TAG, in a comma-separated list.",
	device: func(a *arguments) onDevice {
		firmware := each(a, []string{a.word("FIRMWARE")}, chip.ParseFirmware)
		return func(d *driver.Device) error { d.Chip().SetFirmware(firmware[0]); return nil }
	},
}}

// onLinks is a verb that takes Ethernet channels.
func onLinks(do func(c *chip.Chip, channel int) bool) func(*arguments) onDevice {
	return func(a *arguments) onDevice {
		channels := each(a, a.words("CHANNEL"), parseChannel)
		return func(d *driver.Device) error {
			for _, c := range channels {
				if !do(d.Chip(), c) {
					return fmt.Errorf("device %s has no Ethernet channel %d", d.BDF(), c)
				}
			}
			return nil
		}
	}
}

func parseChannel(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a channel", text)
	}
	return n, nil
}

// simple is a verb that takes a device and nothing else.
func simple(do onDevice) func(*arguments) onDevice {
	return func(*arguments) onDevice { return do }
}
