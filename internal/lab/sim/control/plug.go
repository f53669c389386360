package control

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/lab/sim/driver"
)

var plugVerbs = []Verb{{
	Name: "unplug", Usage: "DEVICE", Short: "pull a device: its files are gone, open descriptors give ENODEV",
	device: simple((*driver.Device).Unplug),
}, {
	Name: "plug", Usage: "BUS_ID [index=N] [hwmon=X] [late=TIME]", Short: "put a device back, optionally under another index and hwmon number",
	Long: "With late=2s, telemetry files and hwmon follow that much later, as on a\nWormhole whose firmware is still booting.",
	device: func(a *arguments) onDevice {
		index, hwmon, late := a.number("index", -1), a.number("hwmon", -1), a.duration("late", 0)
		return func(d *driver.Device) error { return d.Plug(index, hwmon, late) }
	},
}, {
	Name: "unbind", Usage: "DEVICE", Short: "unbind a device from the driver: it stays on the bus, without a driver",
	device: simple((*driver.Device).Unbind),
}, {
	Name: "bind", Usage: "BUS_ID", Short: "bind a device to the driver again",
	device: simple((*driver.Device).Bind),
}, {
	Name: "rebind", Usage: "DEVICE", Short: "unbind a device and bind it again, under the same index",
	Long:   "Its files are then those that the chip has something for now: after dead, no\ntelemetry and no hwmon, as of a chip that was off the bus when the driver bound it.",
	device: simple((*driver.Device).Rebind),
}, {
	Name: "driver", Usage: "VERSION|none", Short: "unload the module and load another version, or none",
	Long: "As with the real one, that is refused while a device node is open.",
	host: func(a *arguments) onHost {
		text := a.word("VERSION")
		return func(h *Host) (string, error) {
			if text == "none" {
				return "", h.Driver.Reload(driver.Version{})
			}
			v, err := driver.ParseVersion(text)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("simulated driver %s loaded\n", v), h.Driver.Reload(v)
		}
	},
}}
