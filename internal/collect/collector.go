package collect

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/source/setup"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// Marker is the file by which a simulated host gives itself away.
const Marker = proc.Marker

// Options are the choices of a Collector. The zero Options are good.
type Options struct {
	// Timeout is how long devices may take to answer, all together; 0 stands
	// for DefaultTimeout. Processes that do not answer, and devices between
	// two snapshots, get a third of it.
	Timeout time.Duration
	// FullScan is how often all of /proc is scanned for programs that
	// account for chips in a container of their own without having a device
	// open (mock runs); 0 stands for never.
	FullScan time.Duration
	// Sources are those that others feed, and that know processes better than
	// tt-metal's own statistics.
	Sources []Source
	// Unopened counts what programs report for devices that they do not have open, with a
	// doubt.
	Unopened bool
	// Ledgers says what is done with ledgers that dead processes left; its
	// Root is the collector's.
	Ledgers track.Options
	// Ended is called, where it is not nil, with each of those, once.
	Ended func(track.Ended)
	// Exited is called, where it is not nil, with the last ledger of each process
	// that has exited, in good order or not, once.
	Exited func(track.Exited)
	// Origin is who makes the snapshots; empty stands for model.Direct.
	Origin model.Origin
	// Pods and Alerts are what else is known about the host at the moment of a
	// snapshot; nil where there are none.
	Pods   func() []model.PodClaim
	Alerts func() []model.Alert
	// Telemetry reads the chips' own tables; nil: they are not read.
	Telemetry Telemetry
	// Thresholds are those of conditions; the zero ones stand for the default.
	Thresholds assess.Thresholds
	// Log has the newest lines of the kernel's log about driver and chips; nil:
	// they are not asked for.
	Log func() []model.LogLine
	// OOMKills are the processes that the kernel killed lately for want of memory;
	// known is false where its log cannot be read. nil: it is not asked, and control
	// groups are.
	OOMKills func() (list []model.OOMKill, known bool)
}

// DefaultTimeout is such that a command answers within a second.
const DefaultTimeout = 700 * time.Millisecond

// Collector makes snapshots of one host. Rates, CPU shares and heartbeats are
// told from one snapshot to the next; between two that are far apart it reads
// the driver's counters by itself, which wrap within seconds.
type Collector struct {
	mu        sync.Mutex  // over all below
	between   *time.Timer // samples the driver until the next snapshot
	closed    bool
	root      hostfs.Root
	timeout   time.Duration
	timing    timing
	driver    *kmd.Reader
	processes *proc.Reader
	regions   *shm.Reader
	swept     *shm.Sweep                                  // what regions last read
	numbers   map[model.ProcessID]map[int]model.ChipPlace // of the last join
	ledgers   *track.Reader
	keepers   atomic.Pointer[[]track.Process] // who keeps a ledger, as of the last Collect
	idle      map[idleKey]*idlePower
	judge     assess.Judge
	host      model.Host // what does not change
	simulated bool

	sources  []Source
	unopened bool
	ended    func(track.Ended)
	exited   func(track.Exited)
	engines  engineTimes // of the last reading of processes
	// exitedNow are the processes whose last ledgers the last sweep found.
	exitedNow []track.Exited
	origin    model.Origin
	pods      func() []model.PodClaim
	alerts    func() []model.Alert
	chips     chips
	openings  openings
	work      work

	telemetry Telemetry
	links     links
	log       func() []model.LogLine
	exits     exits

	virtual *bool // a virtual machine: its bus numbers are made up; nil if not asked yet
}

// New returns a collector of the host below root. It reads little; Collect
// reads the devices.
func New(root hostfs.Root, opts Options) *Collector {
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Origin == "" {
		opts.Origin = model.Direct
	}
	c := &Collector{
		origin: opts.Origin, pods: opts.Pods, alerts: opts.Alerts,
		root:      root,
		timeout:   opts.Timeout,
		driver:    kmd.New(root),
		processes: proc.New(root),
		idle:      map[idleKey]*idlePower{},
		sources:   opts.Sources,
		unopened:  opts.Unopened,
		chips: chips{
			descriptors: umd.Finder{Root: root}, capacities: map[uint64]shm.Capacity{}, known: map[string]board.Endpoint{},
		},
		simulated: root.Exists(Marker),
		telemetry: opts.Telemetry,
		links:     newLinks(root),
		log:       opts.Log,
		exits:     exits{root: root, pidfds: pidfds{root: root}, oom: oomWatch{root: root, kills: opts.OOMKills}},
	}
	if c.telemetry == nil {
		c.telemetry = noTelemetry{}
	}
	c.judge.SetThresholds(opts.Thresholds)
	c.processes.Guard = proc.NewGuard(c.brief())
	c.openings = openings{processes: c.processes, known: map[openingKey]opening{}}
	c.regions = shm.NewReader(shm.Options{Root: root, Capacity: c.chips.capacity, FullScan: opts.FullScan, SearchTime: c.timeout / 2, Processes: c.processes})
	opts.Ledgers.Root, opts.Ledgers.Guard = root, c.processes.Guard
	c.ledgers, c.ended, c.exited = track.NewReader(opts.Ledgers), opts.Ended, opts.Exited
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		c.host.Name = unix.ByteSliceToString(uts.Nodename[:])
		c.host.Kernel = unix.ByteSliceToString(uts.Release[:])
		c.exits.silent = !tellsStatus(c.host.Kernel)
	}
	return c
}

// Close releases what the sources hold open.
func (c *Collector) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.between != nil {
		c.between.Stop()
	}
	c.driver.Close()
	c.regions.Close()
	c.ledgers.Close()
	c.processes.Close()
	c.exits.pidfds.close()
}

// brief is the timeout where the rest of a snapshot has to fit in as well.
func (c *Collector) brief() time.Duration { return c.timeout / 3 }

// Numbered tells where a chip is that a process has a number of its own for,
// as of the last Collect.
func (c *Collector) Numbered(id model.ProcessID, number int) (at model.ChipPlace, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok = c.numbers[id][number]
	return at, ok
}

// Collect makes a snapshot. It takes no longer than the collector's timeout
// and a little: what has not answered by then is in the snapshot, marked.
func (c *Collector) Collect(ctx context.Context) *model.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.sampleLater()
	deadline := time.Now().Add(c.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	late := deadline.Add(time.Second) // what takes longer than that is in trouble
	var sweep kmd.Sweep
	c.timing.run("kmd", late, func() bool {
		sweep = c.driver.Read(deadline)
		return sweep.Loaded || len(sweep.Unbound) == 0
	})
	s := &model.Snapshot{Time: time.Now(), Source: c.origin, Simulated: c.simulated, Host: c.host}
	s.Host.DriverLoaded = sweep.Loaded
	s.Host.DriverVersion = sweep.Driver
	s.Host.Unbound = sweep.Unbound
	s.Host.Broker = setup.Broker(c.root)
	c.processes.Machine(&s.Host, s.Time)
	s.Devices = make([]model.Device, len(sweep.Found))
	for i := range sweep.Found {
		sweep.Found[i].Openers = c.withoutOwn(sweep.Found[i].Openers)
		s.Devices[i] = sweep.Found[i].Device
		c.complete(&s.Devices[i])
	}
	run := func(name string, do func()) {
		c.timing.run(name, late, func() bool { do(); return true })
	}
	run("processes", func() { c.addProcesses(ctx, s, sweep) })
	c.estimate(s, sweep)
	c.addMemory(s, sweep, run)
	run("exits", func() { c.exits.add(s, c.exitedNow) }) // after memory: a process may account for a device without having it open
	run("umd", func() { c.addLocks(s); c.links.add(s) })
	if c.log != nil {
		run("kmsg", func() { s.Log = c.log() })
	}
	if c.pods != nil {
		assignPods(s, c.pods())
	}
	if c.alerts != nil {
		s.Alerts = c.alerts()
	}
	c.judge.Assess(s)
	withhold(s)
	return s
}

// sampling is how long after a reading of the driver the next one is due.
// Commands that show something every second never wait for it.
const sampling = 1200 * time.Millisecond

// sampleLater samples the driver until the next Collect.
func (c *Collector) sampleLater() {
	if c.closed {
		return
	}
	if c.between == nil {
		c.between = time.AfterFunc(sampling, c.sample)
		return
	}
	c.between.Reset(sampling)
}

func (c *Collector) sample() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.driver.Sample(time.Now().Add(c.brief()))
	c.sampleLater()
}
