package sim

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/control"
	"github.com/ttmon/ttmon/internal/lab/sim/descriptor"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/workload"
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

	Cables bool `json:"cables,omitempty"` // join boards that can be by cables: other chip ids, larger meshes
	// MeshHost makes the host one of several that are cabled to a ring: "2/3" is the
	// second of three. All have the same other options; their serial numbers differ.
	MeshHost string `json:"mesh_host,omitempty"`
	UMDDump  bool   `json:"umd_dump,omitempty"` // leave UMD's descriptor in /tmp, as a process that opened the boards does

	Dead string `json:"dead,omitempty"` // chips that are off the bus when the driver binds them: indexes or PCI addresses, by commas

	Procs []string `json:"procs,omitempty"` // workloads to start, see workload.Usage

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
	host, _, err := o.meshHost()
	if err != nil {
		return d, err
	}
	d.Seed, d.Load, d.Frozen = o.Seed+uint64(host), o.Load, o.Frozen
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

// newHost makes the host of the options, beside what the real host has.
func (o Options) newHost(real driver.Surroundings) (*control.Host, error) {
	opts, err := o.driverOptions()
	if err != nil {
		return nil, err
	}
	opts.Host = real
	d := driver.New(opts)
	if err := o.bindDead(d); err != nil {
		return nil, &OptionError{err}
	}
	cabled, err := o.clusterOptions()
	if err != nil {
		return nil, &OptionError{err}
	}
	return &control.Host{Driver: d, Workloads: &workload.Manager{Devices: d}, Cluster: cabled}, nil
}

// begin starts the workloads, and lets the chips look as if they had run for long.
func (o Options) begin(h *control.Host) error {
	specs, err := o.workloads()
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if _, err := h.Workloads.Start(spec); err != nil {
			return err
		}
	}
	h.Driver.Settle()
	return nil
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
	_, err := o.clusterOptions()
	return err
}

// maxMeshHosts is how many hosts can be cabled to a ring: serial numbers have room for
// some more.
const maxMeshHosts = 256

// meshHost reads MeshHost: which host of how many; 0 of 0 where it stands alone.
func (o Options) meshHost() (host, hosts int, err error) {
	if o.MeshHost == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(o.MeshHost, "/")
	host, err1 := strconv.Atoi(a)
	hosts, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || host < 1 || hosts < 2 || host > hosts || hosts > maxMeshHosts {
		return 0, 0, fmt.Errorf("mesh host %q: want the number of the host and how many there are, as 1/3, at most %d", o.MeshHost, maxMeshHosts)
	}
	return host, hosts, nil
}

// clusterOptions says how the boards are cabled. The hosts on both sides are made of
// the same options, so that their chips have the ids that they have over there.
func (o Options) clusterOptions() (c cluster.Options, err error) {
	c.Cables = o.Cables
	host, hosts, err := o.meshHost()
	if err != nil || host == 0 {
		return c, err
	}
	own, _, err := o.gates(host)
	if err != nil {
		return c, err
	}
	n := &cluster.Neighbours{}
	if _, n.Before, err = o.gates((host+hosts-2)%hosts + 1); err != nil {
		return c, err
	}
	if n.After, _, err = o.gates(host%hosts + 1); err != nil {
		return c, err
	}
	if own.Chip == n.After.Chip {
		return c, fmt.Errorf("mesh host %q: simulated boards of this kind have the same ids on every host", o.MeshHost)
	}
	c.Neighbours = n
	return c, nil
}

// gates are where the cables of a host of the ring are plugged in.
func (o Options) gates(host int) (in, out descriptor.Gate, err error) {
	_, hosts, _ := o.meshHost()
	o.MeshHost = fmt.Sprintf("%d/%d", host, hosts)
	opts, err := o.driverOptions()
	if err != nil {
		return in, out, err
	}
	opts.Unloaded, opts.Frozen = false, true
	d := driver.New(opts)
	defer d.Close()
	return cluster.Gates(d, o.Cables)
}
