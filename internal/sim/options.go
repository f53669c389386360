package sim

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/driver"
)

// Options describe a simulated host.
type Options struct {
	Boards   string  `json:"boards"`              // "n150,2xn300,galaxy-blackhole"; empty: the driver without a board
	Driver   string  `json:"driver,omitempty"`    // tt-kmd version; empty: 2.10.0
	Firmware string  `json:"firmware,omitempty"`  // see chip.ParseFirmware; empty: 19.9 with all tags
	Seed     uint64  `json:"seed,omitempty"`      // same seed, same serials and same movements
	Load     float64 `json:"load,omitempty"`      // of all chips, 0…1
	Frozen   bool    `json:"frozen,omitempty"`    // values stand still; hearts go on
	ShareShm bool    `json:"share_shm,omitempty"` // keep the host's /dev/shm instead of an empty one

	// Exe is the program that becomes the host's processes; empty is the
	// running one. It must call Reexec first thing.
	Exe string `json:"-"`
}

// driverOptions checks the options and makes the driver's of them.
func (o Options) driverOptions() (d driver.Options, err error) {
	d.Seed, d.Load, d.Frozen = o.Seed, o.Load, o.Frozen
	if o.Load < 0 || o.Load > 1 {
		return d, fmt.Errorf("load %v: it must be between 0 and 1", o.Load)
	}
	if o.Boards != "" {
		if d.Boards, err = chip.ParseBoards(o.Boards); err != nil {
			return d, err
		}
	}
	if o.Driver != "" {
		if d.Version, err = driver.ParseVersion(o.Driver); err != nil {
			return d, err
		}
	}
	d.Firmware, err = chip.ParseFirmware(o.Firmware)
	return d, err
}
