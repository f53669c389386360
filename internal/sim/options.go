package sim

import (
	"fmt"
	"io"
	"strings"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/control"
	"github.com/ttmon/ttmon/internal/sim/driver"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

// Options describe a simulated host.
type Options struct {
	Boards   string  `json:"boards"`              // "n150,2xn300,galaxy-blackhole"; empty: the driver without a board
	Driver   string  `json:"driver,omitempty"`    // tt-kmd version; empty: 2.10.0; "none": not loaded
	Firmware string  `json:"firmware,omitempty"`  // see chip.ParseFirmware; empty: 19.9 with all tags
	Seed     uint64  `json:"seed,omitempty"`      // same seed, same serials and same movements
	Load     float64 `json:"load,omitempty"`      // of all chips, 0…1
	Frozen   bool    `json:"frozen,omitempty"`    // values stand still; hearts go on
	ShareShm bool    `json:"share_shm,omitempty"` // keep the host's /dev/shm instead of an empty one
	VM       bool    `json:"vm,omitempty"`        // leave a Galaxy's host looking like the virtual machine it may be

	Cables  bool `json:"cables,omitempty"`   // join boards that can be by cables: other chip ids, larger meshes
	UMDDump bool `json:"umd_dump,omitempty"` // leave UMD's descriptor in /tmp, as a process that opened the boards does

	Dead string `json:"dead,omitempty"` // chips that are off the bus when the driver binds them: indexes or PCI addresses, by commas

	Procs  []string `json:"procs,omitempty"`  // workloads to start, see workload.Usage
	Script string   `json:"script,omitempty"` // what happens when, see control.ParseScript

	// Control is where to listen; empty: in the host's own directory.
	Control string `json:"control,omitempty"`

	// Exe is the program that becomes the host's processes; empty is the
	// running one. It must call Reexec first thing.
	Exe string `json:"-"`
	// Stderr takes what the host's process has to say; nil keeps it for
	// the errors of Start and Close.
	Stderr io.Writer `json:"-"`
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
	if d.Unloaded = o.Driver == "none"; o.Driver != "" && !d.Unloaded {
		if d.Version, err = driver.ParseVersion(o.Driver); err != nil {
			return d, err
		}
	}
	d.Firmware, err = chip.ParseFirmware(o.Firmware)
	return d, err
}

// bindDead takes the chips of Dead off the bus before the driver binds them.
func (o Options) bindDead(d *driver.Driver) error {
	if o.Dead == "" {
		return nil
	}
	for name := range strings.SplitSeq(o.Dead, ",") {
		dev, err := d.Device(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		dev.SetDead(true)
		if d.Loaded() {
			if err := dev.Rebind(); err != nil {
				return err
			}
		}
	}
	return nil
}

// workloads reads the descriptions in Procs.
func (o Options) workloads() (list []workload.Spec, err error) {
	for _, text := range o.Procs {
		specs, err := workload.Parse(text)
		if err != nil {
			return nil, err
		}
		list = append(list, specs...)
	}
	return list, nil
}

// check finds what is wrong with the options before anything is started.
func (o Options) check() error {
	if _, err := o.driverOptions(); err != nil {
		return err
	}
	if _, err := o.workloads(); err != nil {
		return err
	}
	_, err := control.ParseScript(strings.NewReader(o.Script))
	return err
}
