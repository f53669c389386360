package uprobe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// Options say what to watch and how much it may cost. The zero value has the
// defaults.
type Options struct {
	Log *slog.Logger
	// Libraries are globs of library files to be watched before any process
	// maps them.
	Libraries []string
	// Memory is a file that keeps which libraries were used, so that they are
	// watched before they are used again; empty: none.
	Memory string
	// Limit is the number of hits a second above which ttmond detaches from a
	// process; 0 means DefaultLimit.
	Limit float64
	// Waits has probes set where processes enqueue work and wait for it, too: they
	// are on the program's own path, and cost it some microseconds a call.
	Waits bool
	// MaxBlocks is how many live blocks are kept of a process; 0 means
	// DefaultMaxBlocks.
	MaxBlocks uint64
	// Blocks is how many live blocks are kept of all processes of a user, and of
	// all users. The zero Limit is none.
	Blocks budget.Limit
	// MaxProcesses is how many processes may hit probes at a time, of which a
	// user may have a quarter; 0 means 16384.
	MaxProcesses uint32
	// RingBytes is the size of the ring buffer, a power of two; 0 means 4 MiB.
	RingBytes uint32
	// MaxLibraries bounds how many files are watched, of which a user may have
	// a quarter; 0 means 128.
	MaxLibraries int

	// fresh is how long after its mapping a process without a chip counts as one
	// that never had any; 0 means a second. A mock run with its
	// statistics switched off shows none: importing ttnn takes it longer.
	fresh time.Duration
	// libraryTimeout is how long a library may take to be read, and then to get
	// its probes; 0 means 5 s. A tenth of a second is usual.
	libraryTimeout time.Duration
}

// Defaults.
const (
	DefaultLimit     = 50_000
	DefaultMaxBlocks = 1 << 20
)

// Source watches the allocators of processes. Its methods may be called from any
// goroutine.
type Source struct {
	o         Options
	log       *slog.Logger
	kernel    *kernel
	processes *proc.Reader // discover's
	memory    *memory      // discover's
	reads     reads        // discover's
	lines     lines        // discover's
	pythons   pythons      // discover's
	queue     []mapping    // discover's: those to be inspected
	dropped   bool         // discover's: some did not fit into the queue
	slots     *budget.Pool // of libraries
	// programRoom is how many programs are kept for followers.
	programRoom *budget.Pool
	retired     *retired

	ended chan struct{} // closed when it no longer runs
	ready chan struct{} // closed when all running processes have been inspected
	ring  chan struct{} // closed when the ring is open
	// failed has an element when requests have failed that were not taken yet.
	failed chan struct{}
	// eventReading and pageReading are how far the rings have been read.
	eventReading, pageReading reading

	nameless atomic.Uint64 // events of processes without a place, by the last sweep
	synced   *sync.Cond    // with mu

	mu        sync.Mutex // over all below
	accounts  *accounts
	libraries map[fileID]*library
	numbers   [256]bool        // that libraries have
	known     map[int][]fileID // the libraries of each process
	rates     map[rateKey]count
	elsewhere map[uint32]bool // processes of other hosts
	events    uint64
	slow      error      // why new processes are noticed late
	records   *mmapWatch // that discover waits for; nil: it waits for none
}

// Open loads the program into the kernel. The error is an *ObstacleError
// where the machine or our rights do not allow it.
func Open(o Options) (*Source, error) {
	ring, processes := o.RingBytes, o.MaxProcesses
	if ring == 0 {
		ring = 4 << 20
	}
	if processes == 0 {
		processes = 16 << 10
	}
	k, err := load(ring, processes)
	if err != nil {
		return nil, err
	}
	return newSource(o, k), nil
}

func newSource(o Options, k *kernel) *Source {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.MaxBlocks == 0 {
		o.MaxBlocks = DefaultMaxBlocks
	}
	if o.MaxLibraries == 0 {
		o.MaxLibraries = 128
	}
	if o.fresh == 0 {
		o.fresh = time.Second
	}
	if o.libraryTimeout == 0 {
		o.libraryTimeout = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		o: o, log: o.Log, kernel: k, accounts: newAccounts(o.MaxBlocks, o.Blocks), processes: newProcesses(),
		ended: make(chan struct{}), ready: make(chan struct{}), ring: make(chan struct{}), failed: make(chan struct{}, 1), libraries: map[fileID]*library{}, known: map[int][]fileID{}, rates: map[rateKey]count{}, elsewhere: map[uint32]bool{},
		memory: &memory{}, reads: reads{spent: map[int]budget.Meter{}}, slots: budget.NewPool("libraries", budget.Divide(int64(o.MaxLibraries)), nil),
		programRoom: budget.NewPool("followed_programs", keptPrograms, nil),
	}
	s.eventReading.parks, s.pageReading.parks = make(chan chan struct{}), make(chan chan struct{})
	s.synced, s.retired = sync.NewCond(&s.mu), newRetired()
	return s
}

// Ready is closed when all processes that were there before are watched.
func (s *Source) Ready() <-chan struct{} { return s.ready }

// Run watches until ctx is done, then takes all probes out.
func (s *Source) Run(ctx context.Context) error {
	defer s.close()
	defer close(s.ended)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.readEvents(ctx) })
	g.Go(func() error { return s.readWork(ctx) })
	g.Go(func() error { return s.discover(ctx) })
	g.Go(func() error { return s.sweep(ctx) })
	g.Go(func() error { return s.retired.run(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (s *Source) close() {
	s.mu.Lock()
	for id := range s.libraries {
		s.drop(id)
	}
	s.mu.Unlock()
	for s.retired.closeNext() {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernel.Close()
	s.eventReading.served.Store(^uint64(0)) // Sync must not wait for what will not come
	s.pageReading.served.Store(^uint64(0))
	s.synced.Broadcast()
}

// How long events may wait in the ring: short while some come, longer when
// none did, longer still while no process is known that could make one.
// Sync does not wait for any of them, and watch wakes the reader.
const (
	pollBusy  = 20 * time.Millisecond
	pollIdle  = 100 * time.Millisecond
	pollAlone = time.Second
)

// pollInterval is how long events may wait after a read that found n.
func (s *Source) pollInterval(n int) time.Duration {
	if n > 0 {
		return pollBusy
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 {
		return pollAlone
	}
	return pollIdle
}

// openRing opens what events arrive in, before the first probe is set. Until
// then there is nothing in it, and it is not mapped: the 4 MB would count twice
// as ours. Only discover calls it, or who has not begun to run.
func (s *Source) openRing() error {
	if s.kernel.reader != nil {
		return nil
	}
	r, err := openRing(s.kernel.Events, min(wakeBytes, int(s.kernel.Events.MaxEntries())/4))
	if err != nil {
		return fmt.Errorf("opening the ring of events: %w", err)
	}
	if s.kernel.pages, err = openRing(s.kernel.Work, int(s.kernel.Work.MaxEntries())/8); err != nil {
		r.Close()
		return fmt.Errorf("opening the ring of pages: %w", err)
	}
	s.kernel.reader = r
	close(s.ring)
	return nil
}

// ringOpen reports whether there is a ring: before, no probe is set.
func (s *Source) ringOpen() bool {
	select {
	case <-s.ring:
		return true
	default:
		return false
	}
}

// wake makes the reader look now. It reports whether there is a ring.
func (s *Source) wake() bool {
	if !s.ringOpen() {
		return false
	}
	s.kernel.reader.Flush()
	return true
}

// reading is the reading of a ring.
type reading struct {
	parks             chan chan struct{} // stops it until the channel sent closes
	requested, served atomic.Uint64      // calls of Sync
}

// waitResumed blocks while the reader is parked.
func waitResumed(ctx context.Context, parked chan struct{}) error {
	select {
	case <-parked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read reads a ring, once it is open: from time to time, when Sync asks, and when the
// kernel's part says that much waits in it. pause is how long it may wait after a look
// that found n.
func (s *Source) read(ctx context.Context, r *reading, from **ring, pause func(n int) time.Duration, readAll func(*ring) (n int, err error)) error {
	for open := false; !open; {
		select {
		case <-s.ring:
			open = true
		case parked := <-r.parks:
			if err := waitResumed(ctx, parked); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ring := *from
	defer context.AfterFunc(ctx, func() { ring.Close() })()
	wait := pollIdle
	for {
		n, err := 0, ring.wait(wait)
		if err == nil {
			n, err = s.serveSync(r, func() (int, error) { return readAll(ring) })
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded): // the ring is empty
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return fmt.Errorf("reading what the kernel reports: %w", err)
		}
		if wait = pause(n); r.served.Load() < r.requested.Load() {
			wait = 0 // Sync was called during this look: only the next one surely has what happened before
		}
		select {
		case parked := <-r.parks:
			if err := waitResumed(ctx, parked); err != nil {
				return err
			}
		default:
		}
	}
}

// serveSync reads all that is in a ring, for the calls of Sync before.
func (s *Source) serveSync(r *reading, readAll func() (n int, err error)) (n int, err error) {
	asked := r.requested.Load()
	n, err = readAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.served.Store(max(r.served.Load(), asked))
	s.synced.Broadcast()
	return n, err
}

func (s *Source) readEvents(ctx context.Context) error {
	var record ringbuf.Record
	return s.read(ctx, &s.eventReading, &s.kernel.reader, s.pollInterval, func(from *ring) (int, error) { return s.readAll(from, &record) })
}

// readAll applies events until the ring is empty, or as many as it can have had when
// the first was read: while programs allocate all the time it is never empty.
func (s *Source) readAll(from recordReader, record *ringbuf.Record) (n int, err error) {
	began, most := time.Now(), int(s.kernel.Events.MaxEntries())/eventBytes
	for {
		if err = os.ErrDeadlineExceeded; n < most {
			err = from.ReadInto(record)
		}
		if err != nil {
			s.mu.Lock()
			if t := s.accounts.tap; t != nil {
				t.caughtUp(n, began)
			}
			s.learnNewChips(time.Now())
			s.mu.Unlock()
			if n > 0 {
				s.kernel.nextTurn()
			}
			return n, err
		}
		s.mu.Lock()
		if n == 0 {
			s.accounts.bootTime = proc.BootTime()
		}
		for ; err == nil; n++ {
			s.applySample(record.RawSample)
			if record.Remaining == 0 || n%512 == 511 {
				n++
				break // others want the lock too
			}
			err = from.ReadInto(record)
		}
		if t := s.accounts.tap; t != nil && time.Since(t.wake) > notifyEvery {
			t.notify(time.Now())
		}
		s.mu.Unlock()
		if err != nil {
			return n, err
		}
	}
}

// park stops reading events and pages, which wait in their rings until resume is
// called.
func (s *Source) park() (resume func()) {
	parked := make(chan struct{})
	for _, reader := range []chan chan struct{}{s.eventReading.parks, s.pageReading.parks} {
		if !s.parkReader(reader, parked) {
			return func() {}
		}
	}
	return func() { close(parked) }
}

// parkReader stops one of them. It is false where it no longer runs.
func (s *Source) parkReader(reader chan chan struct{}, parked chan struct{}) bool {
	for {
		if s.wake() {
			s.kernel.pages.Flush()
		}
		select {
		case reader <- parked:
			return true
		case <-time.After(10 * time.Millisecond):
		case <-s.ended:
			return false
		}
	}
}

func (s *Source) applySample(sample []byte) {
	e, err := decode(sample)
	if err != nil {
		s.log.Error("cannot read kernel event", "err", err)
		return
	}
	s.events++
	if e.kind == exited {
		s.forget(int(e.pid))
	}
	if s.isElsewhere(e.pid) {
		return
	}
	if _, known := s.known[int(e.pid)]; !known && e.kind.ofSite() && s.accounts.processes[e.pid] == nil {
		// It may be a fork of a process that has hit no probe yet, or one that
		// was not inspected in time: only its mappings tell.
		s.accounts.process(e.pid).unplaced = true
		s.wakeDiscover()
	}
	s.accounts.apply(&e)
	s.notifyFailures() // here: while programs allocate all the time the ring is never empty
}

// isElsewhere reports whether events come from a process of another host, which has
// the same library mapped: simulated hosts share the kernel, and its probes. A
// process is checked once, before it has a record. With mu.
func (s *Source) isElsewhere(pid uint32) bool {
	if s.accounts.processes[pid] != nil {
		return false
	}
	if !s.elsewhere[pid] && s.processes.OfAnotherHost(int(pid)) {
		s.elsewhere[pid] = true
	}
	return s.elsewhere[pid]
}

// Sync returns when all events from before the call are applied.
func (s *Source) Sync() {
	want, work := s.eventReading.requested.Add(1), s.pageReading.requested.Add(1)
	if !s.wake() {
		return // no probe is set yet: nothing can have happened
	}
	s.kernel.pages.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.eventReading.served.Load() < want || s.pageReading.served.Load() < work {
		s.synced.Wait()
	}
}

// sinceBoot is the time that events are stamped with.
func sinceBoot() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return uint64(ts.Nano())
}
