package firmware

import (
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// Mode is how much is read.
type Mode string

// The modes.
const (
	Off   Mode = "off"   // nothing: no chip is touched
	Table Mode = "table" // the telemetry table
	Full  Mode = "full"  // and the accounts of dispatch and Ethernet cores, while a program of tt-metal has the chip open
)

// Options are the choices of a Source.
type Options struct {
	Root hostfs.Root
	Mode Mode
	Log  *slog.Logger
	// Every is the time between two samples of a chip; 0 stands for
	// DefaultEvery.
	Every time.Duration
	// Deadline is how long a reader may take; 0 stands for DefaultDeadline.
	Deadline time.Duration
	// Start starts a reader of chips; nil: this program, again.
	Start func([]chipread.Request) (Reader, error)
	// Superuser says that PCI files can be mapped.
	Superuser bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// DefaultEvery is the time between two samples: the firmware's own values move
// slowly, and a sample starts a process.
const (
	DefaultEvery    = 5 * time.Second
	DefaultDeadline = 5 * time.Second
	// atOnce is how many readers run at a time, those that stalled aside.
	atOnce = 4
	// backOff is how long a chip that read as all ones is left alone.
	backOff = time.Minute
	// defaultGrace is after how long an idle Wormhole is powered down.
	defaultGrace = 5 * time.Second
)

// Source reads the chips of a host. Its methods may be called by many at once.
type Source struct {
	opts Options

	mu      sync.Mutex
	chips   map[string]*chip // by bus id
	own     map[int]Reader   // those that run, by pid
	killed  map[int]bool     // pids of readers that were: the driver may list them for as long as their load takes
	running int              // readers that have not stalled
	started int              // readers so far
	closed  bool
	wait    sync.WaitGroup // over readers that have not stalled
}

// New returns a source that has read nothing.
func New(o Options) *Source {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Start == nil {
		o.Start = startSelf
	}
	return &Source{opts: o, chips: map[string]*chip{}, own: map[int]Reader{}, killed: map[int]bool{}}
}

// Privileged reports whether this process can map PCI files.
func Privileged() bool { return os.Geteuid() == 0 }

// Own reports whether a process is a reader of this source: it uses no chip.
func (s *Source) Own(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed[pid] && unix.Kill(pid, 0) != unix.ESRCH {
		delete(s.killed, pid) // another process has the number
	}
	return s.own[pid] != nil || s.killed[pid]
}

// Close waits for readers that answer, and starts no more.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wait.Wait()
}

// Sample starts readers for those of the host's chips whose samples are due. driver
// is its release as the kernel prints it.
func (s *Source) Sample(driver string, seen []Seen) {
	if s.opts.Mode == Off {
		return
	}
	now := s.opts.Now()
	version, _ := kmd.ParseVersion(driver)
	grace := s.grace()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	present := map[string]bool{}
	var due []candidate
	for _, one := range seen {
		d := one.Device
		present[d.BusID] = true
		c := s.chips[d.BusID]
		if c == nil {
			c = &chip{due: now, state: model.TelemetryPending, since: now}
			s.chips[d.BusID] = c
		}
		f := facts{Seen: one, now: now, driver: version, superuser: s.opts.Superuser, full: s.opts.Mode == Full, grace: grace}
		c.observe(&f)
		due = append(due, candidate{c, f})
	}
	// Those that have waited longest go first: where there are many chips not all
	// that are due can be read now.
	sorted.Stable(due, func(a, b *candidate) int { return a.chip.due.Compare(b.chip.due) })
	s.read(due, now)
	for bus, c := range s.chips {
		if !present[bus] && c.reader == nil {
			delete(s.chips, bus)
		}
	}
}

// candidate is a chip and what decides on its sample.
type candidate struct {
	chip  *chip
	facts facts
}

// read starts readers for the chips whose samples are due. Chips that are read
// without opening anything share no process with others: theirs may open nothing.
func (s *Source) read(due []candidate, now time.Time) {
	var resources, nodes []job
	for i := range due {
		c, f := due[i].chip, &due[i].facts
		if c.reader != nil || c.state == model.TelemetryStalled || now.Before(c.due) {
			continue
		}
		way, cause := c.way(f)
		if cause != "" {
			c.set(model.TelemetryRefused, cause, now)
			continue
		}
		if r := s.request(c, f, way); r.OpensNode() {
			nodes = append(nodes, job{c, r})
		} else {
			resources = append(resources, job{c, r})
		}
	}
	for _, jobs := range [][]job{resources, nodes} {
		for group := range slices.Chunk(jobs, chipread.MaxChips) {
			if s.running >= atOnce {
				return // at the next snapshot
			}
			s.start(group, now)
		}
	}
}

// grace is the driver's delay before it powers an idle Wormhole down.
func (s *Source) grace() time.Duration {
	text, err := s.opts.Root.ReadString("/sys/module/tenstorrent/parameters/idle_power_down_grace_ms")
	ms, perr := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
	if err != nil || perr != nil {
		return defaultGrace
	}
	return time.Duration(ms) * time.Millisecond
}
