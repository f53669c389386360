package collect

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/source/procfs"
)

// Marker is the file by which a simulated host gives itself away.
const Marker = "/sys/ttmon-sim"

// Options are the choices of a Collector. The zero Options are good.
type Options struct {
	// Patience is how long devices may take to answer, all together;
	// 0 stands for 700 ms, so that a command answers within a second.
	Patience time.Duration
}

// Collector makes snapshots of one host. Rates, CPU shares and heartbeats are
// told from one snapshot to the next. It is not safe for concurrent use.
type Collector struct {
	root      hostfs.Root
	patience  time.Duration
	driver    *kmd.Reader
	processes *procfs.Reader
	idle      map[string]*idlePower // by BDF
	host      model.Host            // what does not change
	simulated bool
	virtual   *bool // a virtual machine: its bus numbers are made up; nil if not asked yet
}

// New returns a collector of the host below root. It reads little; devices
// are looked at by Collect.
func New(root hostfs.Root, opts Options) *Collector {
	if opts.Patience == 0 {
		opts.Patience = 700 * time.Millisecond
	}
	c := &Collector{
		root:      root,
		patience:  opts.Patience,
		driver:    kmd.New(root),
		processes: procfs.New(root),
		idle:      map[string]*idlePower{},
		simulated: root.Exists(Marker),
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		c.host.Name = unix.ByteSliceToString(uts.Nodename[:])
		c.host.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	return c
}

// Close releases what the sources hold open.
func (c *Collector) Close() { c.driver.Close() }

// Collect makes a snapshot. It takes no longer than the collector's patience
// and a little: what has not answered by then is in the snapshot, marked.
func (c *Collector) Collect(ctx context.Context) *model.Snapshot {
	deadline := time.Now().Add(c.patience)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	sweep := c.driver.Read(deadline)
	s := &model.Snapshot{Time: time.Now(), Source: model.Direct, Simulated: c.simulated, Host: c.host}
	s.Host.DriverLoaded = sweep.Loaded
	s.Host.DriverVersion = sweep.Driver
	s.Host.Unbound = sweep.Unbound
	for _, f := range sweep.Found {
		s.Devices = append(s.Devices, c.device(f))
	}
	c.addProcesses(ctx, s, sweep)
	c.estimate(s)
	return s
}
