// Package gather takes failed allocations from the sources that see them, keeps
// each once, counts them, and reports the new ones.
//
// Its place in the flow: ttmond gives it the probes (source/uprobe) and the
// ledgers of libttmon (source/track); it fills failure/keep, and the counts of a
// snapshot. Programs decide how often a request fails and how large a ledger is,
// so all work that a failure causes is bounded: by process, by user and in all.
package gather

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/failure/keep"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Options are where failures come from, and where they go.
type Options struct {
	Root  hostfs.Root
	Store *keep.Store
	// Probes takes what the probes saw since the last call; nil: there are none.
	Probes func() []*failure.Record
	// Failed receives when the probes have seen something; nil: there are none.
	Failed <-chan struct{}
	// Ledgers are those of the last sweep.
	Ledgers func() []track.Process
	// Latest is the last snapshot; nil: there is none yet.
	Latest func() *model.Snapshot
	// New is called once for each failure that is not a repetition, when it is
	// known which devices it is about. The record must not be changed, and names
	// only devices that the process was seen to have open. A user whose programs
	// fail often is not reported every time: LeftOut says later how many were not.
	New     func(*failure.Record)
	LeftOut func(uid int, n uint64)
}

// Gatherer takes failures from their sources.
type Gatherer struct {
	o     Options
	early *earlyReader
	// processes describes those that fail before a snapshot has them.
	processes *proc.Reader
	// seen says how many times each failure of a ledger was taken, by the path of
	// the ledger and the failure's number.
	seen map[string]map[uint64]uint64
	// tells has what the ledgers of processes tell of.
	tells map[subject]bool
	// held is what the probes saw of processes that keep a ledger, which tells more of
	// it and has not been read since.
	held []held
	// waiting are failures that are not reported yet, and since when.
	waiting map[string]time.Time
	reports reportBudget

	mu      sync.Mutex
	ended   []track.Ended
	devices devices
	// failed are those of each process, of the last ones that failed.
	failed map[model.ProcessID]*failed
}

// failed are the failures of a process, and whose it is.
type failed struct {
	model.Failures
	uid int
}

// New makes a Gatherer.
func New(o Options) *Gatherer {
	g := &Gatherer{
		o: o, early: newEarlyReader(o.Root), processes: proc.New(o.Root), seen: map[string]map[uint64]uint64{}, tells: map[subject]bool{}, waiting: map[string]time.Time{},
		reports: reportBudget{}, devices: newDevices(), failed: map[model.ProcessID]*failed{},
	}
	for _, k := range o.Store.List(func(int) bool { return true }) { // a predecessor saw them
		g.countProcess(&k, k.Count)
	}
	return g
}

const (
	// probesPause is the least time between two reads of what the probes saw. A program
	// that dies of a failure lives a little longer, and its ledger can be read in that
	// time.
	probesPause = 100 * time.Millisecond
	// sweepEvery is how often all ledgers are searched.
	sweepEvery = time.Second
)

// Run takes failures until ctx is done, and writes then what is not on disk yet.
// It sleeps until the probes see a failure: most hosts never have one.
func (g *Gatherer) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	defer g.processes.Close()
	defer g.o.Store.Flush()
	failed, resume := g.o.Failed, make(<-chan time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
			g.fromProbes()
			failed, resume = nil, time.After(probesPause) // a program may fail all day
		case <-resume:
			failed = g.o.Failed
		case <-tick.C:
			g.fromLedgers()
		}
	}
}

// subject is what failures are about of which a ledger tells all or none. A user can
// write a ledger in the name of another's process: that reports no failure of it.
type subject struct {
	pid, uid int
	kind     failure.Kind
	pool     string
}

func subjectOf(r *failure.Record) subject {
	return subject{r.Process.PID, r.Process.UID, r.Kind, r.Pool}
}

// held is a failure that the probes saw.
type held struct {
	*failure.Record
	since time.Time
}

const (
	// ledgerTimeout is how long what the probes saw waits for a ledger to tell of it:
	// for more than a sweep.
	ledgerTimeout = 3 * time.Second
	// maxHeld bounds what waits. Beyond it failures are taken as the probes saw them.
	maxHeld = 256
)

// fromProbes takes what the probes saw, and reads the ledgers of the processes
// that failed: those know the lines, and a process that fails may exit before the
// next sweep. Where a ledger reports such failures it is believed alone: which of
// its records is the one that the probes saw could only be guessed.
func (g *Gatherer) fromProbes() {
	if g.o.Probes == nil {
		return
	}
	keeps := map[int]bool{}
	for _, p := range g.o.Ledgers() {
		keeps[p.PID] = true
	}
	for _, r := range g.o.Probes() {
		pid, now := r.Process.PID, time.Now()
		g.early.read(pid, now, func(path string, l *ledgerfile.Ledger, who failure.Process) {
			keeps[pid] = true
			g.fromLedger(path, l, who)
		})
		g.identify(&r.Process)
		switch {
		case g.tells[subjectOf(r)]:
		case keeps[pid] && len(g.held) < maxHeld:
			g.held = append(g.held, held{r, now})
		default:
			g.add(r)
		}
	}
}

// settle takes what the probes saw and no ledger reports.
func (g *Gatherer) settle(keeps map[int]bool, now time.Time) {
	g.held = slices.DeleteFunc(g.held, func(h held) bool {
		switch {
		case g.tells[subjectOf(h.Record)]:
		case keeps[h.Process.PID] && now.Sub(h.since) < ledgerTimeout:
			return false
		default:
			g.add(h.Record)
		}
		return true
	})
	maps.DeleteFunc(g.tells, func(x subject, _ bool) bool { return !keeps[x.pid] })
}

// fromLedgers takes what is new in the ledgers of the last sweep, and in those of
// processes that have ended since.
func (g *Gatherer) fromLedgers() {
	present, keeps := map[string]bool{}, map[int]bool{}
	for _, p := range g.o.Ledgers() {
		present[p.Path], keeps[p.PID] = true, true
		if len(p.Ledger.Failures) == 0 {
			continue
		}
		uid, err := proc.Owner(g.o.Root, p.PID)
		if err != nil {
			uid = -1 // it has exited: only root may see its failures
		}
		g.fromLedger(p.Path, p.Ledger, failure.Process{PID: p.PID, Start: p.Start, UID: uid, Name: p.Ledger.Comm})
	}
	g.mu.Lock()
	ended := g.ended
	g.ended = nil
	g.mu.Unlock()
	for _, e := range ended {
		g.fromLedger(e.Path, e.Ledger, failure.Process{PID: e.Ledger.PID, Start: e.Ledger.StartTicks, UID: e.UID, Name: e.Ledger.Comm})
	}
	maps.DeleteFunc(g.seen, func(path string, _ map[uint64]uint64) bool { return !present[path] })
	g.early.forget(time.Now())
	g.settle(keeps, time.Now())
	g.report(time.Now())
}

// maxEnded bounds the ledgers of processes that have ended and wait to be read.
const maxEnded = 64

// Ended takes the ledger of a process that has ended. It does not wait.
func (g *Gatherer) Ended(e track.Ended) {
	if g == nil || len(e.Ledger.Failures) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.ended) < maxEnded {
		g.ended = append(g.ended, e)
	}
}

// fromLedger takes the failures of a ledger that were not taken yet.
func (g *Gatherer) fromLedger(path string, l *ledgerfile.Ledger, who failure.Process) {
	evicted := slices.ContainsFunc(l.Failures, func(x ledgerfile.Failure) bool { return x.Number > uint64(len(l.Failures)) })
	for i := range l.Failures {
		x := &l.Failures[i]
		if g.seen[path][x.Number] >= x.Count {
			continue
		}
		if g.seen[path] == nil {
			g.seen[path] = map[uint64]uint64{}
		}
		g.seen[path][x.Number] = x.Count
		if r, ok := failure.FromLedger(l, x, who); ok {
			r.Uncounted = evicted
			g.tells[subjectOf(r)] = true
			g.add(r)
		}
	}
}

// add judges a record, keeps and counts it, and reports it if it is new.
func (g *Gatherer) add(r *failure.Record) {
	s, now := g.o.Latest(), time.Now()
	if s != nil {
		r.FillFrom(s)
	}
	g.identify(&r.Process)
	if r.State != nil {
		r.Judge()
	}
	k := r.Summary()
	added := g.o.Store.Add(r)
	k.ID = added.ID
	g.mu.Lock()
	g.devices.count(&k.Process, k.Chips, added.Count, r.Uncounted, s, now)
	known := g.devices.known(r)
	g.mu.Unlock()
	g.countProcess(&k, added.Count)
	switch {
	case !added.New:
	case known || len(g.waiting) >= maxWaiting:
		g.announce(r, now)
	default:
		g.waiting[added.ID] = now
	}
}

// announce reports a failure, unless its user has reported too many.
func (g *Gatherer) announce(r *failure.Record, now time.Time) {
	if !g.reports.allow(r.Process.UID, now) {
		return
	}
	g.mu.Lock()
	r = g.devices.public(r)
	g.mu.Unlock()
	g.o.New(r)
}

// A program may fail before a snapshot knows which device its chip is. Its failure
// is reported when that is known, or after deviceTimeout.
const (
	maxWaiting    = 64
	deviceTimeout = 5 * time.Second
)

// report reports failures whose devices have become known.
func (g *Gatherer) report(now time.Time) {
	s := g.o.Latest()
	g.mu.Lock()
	g.devices.recount(s, now)
	g.mu.Unlock()
	for id, since := range g.waiting {
		if late := now.Sub(since) >= deviceTimeout; !late && !g.knows(s, id) {
			continue
		}
		delete(g.waiting, id)
		if r := g.o.Store.Change(id, func(r *failure.Record) { place(r, s) }); r != nil {
			g.announce(r, now)
		}
	}
	g.reports.flush(now, g.o.LeftOut)
}

func place(r *failure.Record, s *model.Snapshot) {
	if s != nil {
		r.ResolveChips(s)
	}
}

// knows reports whether snapshots have all chips of a record, and its process
// using them.
func (g *Gatherer) knows(s *model.Snapshot, id string) bool {
	if s == nil {
		return false
	}
	r, ok := g.o.Store.Get(id)
	if !ok {
		return true
	}
	r.Chips = slices.Clone(r.Chips) // the store's own
	r.ResolveChips(s)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.devices.known(r)
}

// identify asks the kernel who a process is that no snapshot has yet. Its command
// line lies in its own memory, which may not answer: the reader gives up then.
func (g *Gatherer) identify(p *failure.Process) {
	if p.UID >= 0 && p.Start != 0 && p.Name != "" && p.Command != "" {
		return
	}
	g.processes.StartSweep()
	defer g.processes.EndSweep()
	for _, known := range g.processes.Describe([]int{p.PID}) {
		if known.StartTicks != 0 && (p.Start == 0 || known.StartTicks == p.Start) {
			p.Identify(&known)
		}
	}
}

// Bounds of the processes whose failures are counted, of a user and in all: who
// starts many that fail pushes out its own first.
const (
	maxFailedOfUser = 128
	maxFailed       = 1024
)

// countProcess adds failures to those of their process.
func (g *Gatherer) countProcess(k *failure.Summary, n uint64) {
	id := model.ProcessID{PID: k.Process.PID, StartTicks: k.Process.Start}
	if id.StartTicks == 0 {
		return // it exited before anything was known of it: another may have its pid
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.failed[id]
	if f == nil {
		g.makeRoom(k.Process.UID)
		f = &failed{uid: k.Process.UID}
		g.failed[id] = f
	}
	f.Count += n
	if !k.Last.Before(f.Last) {
		f.Last, f.Pool, f.Clash, f.ID = k.Last, k.Pool, k.Kind == failure.Clash && k.Cause != failure.TooLarge, cmp.Or(k.ID, f.ID)
	}
}

// makeRoom forgets the process that failed longest ago, of a user or of all, where
// there are too many.
func (g *Gatherer) makeRoom(uid int) {
	own, oldest, ownOldest := 0, model.ProcessID{}, model.ProcessID{}
	for id, f := range g.failed {
		if first, ok := g.failed[oldest]; !ok || f.Last.Before(first.Last) {
			oldest = id
		}
		if f.uid != uid {
			continue
		}
		own++
		if first, ok := g.failed[ownOldest]; !ok || f.Last.Before(first.Last) {
			ownOldest = id
		}
	}
	switch {
	case own >= maxFailedOfUser:
		delete(g.failed, ownOldest)
	case len(g.failed) >= maxFailed:
		delete(g.failed, oldest)
	}
}

// Fill puts the counts into a snapshot that is about to be published.
func (g *Gatherer) Fill(s *model.Snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.devices.observe(s, time.Now())
	for i := range s.Devices {
		d := &s.Devices[i]
		d.AllocationFailures, d.AllocationFailuresBound = g.devices.failures(d)
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Failures = g.failuresOf(p.ID()); p.Failures == nil && watched(p) {
			p.Failures = &model.Failures{}
		}
	}
	for i := range s.Exits {
		s.Exits[i].Failures = g.failuresOf(s.Exits[i].ID)
	}
}

// failuresOf are those of a process; nil: none is known.
func (g *Gatherer) failuresOf(id model.ProcessID) *model.Failures {
	f := g.failed[id]
	if f == nil {
		return nil
	}
	c := f.Failures
	return &c
}

// watched reports whether a failure of a process would be seen: its allocations
// are.
func watched(p *model.Process) bool {
	return slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Source == model.FromTrack || u.Source == model.FromUprobe })
}
