package runreport

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Builder gathers what processes wrote down while the program runs.
type Builder struct {
	started time.Time
	last    map[string]entry // by path of the ledger
	order   []string
	sampled map[chipPool]peak // sums over processes, as they were seen
	works   bool              // what ledgers say of programs is asked for
}

type entry struct {
	ledger  *ledgerfile.Ledger
	running bool
	seen    time.Time        // when work was asked for last
	work    *ledgerfile.Work // nil: nothing is known of programs
}

type chipPool struct {
	id   uint64 // 0: all chips together
	pool model.Pool
}

type peak struct {
	bytes uint64
	at    time.Time
}

// NewBuilder begins a report on a program that starts now.
func NewBuilder(started time.Time) *Builder {
	return &Builder{started: started, last: map[string]entry{}, sampled: map[chipPool]peak{}}
}

// Add notes the newest copy of a process's ledger.
func (b *Builder) Add(path string, l *ledgerfile.Ledger, running bool) {
	if _, ok := b.last[path]; !ok {
		b.order = append(b.order, path)
	}
	e := b.last[path]
	e.ledger, e.running = l, running
	b.last[path] = e
}

// AddWork notes what a process's ledger says of its programs.
func (b *Builder) AddWork(path string, w *ledgerfile.Work, at time.Time) {
	b.works = true
	e, ok := b.last[path]
	if !ok {
		return // not a process of this run
	}
	e.seen = at
	if w != nil {
		e.work = w
	}
	b.last[path] = e
}

// Processes counts those that keep or kept a ledger.
func (b *Builder) Processes() int { return len(b.last) }

// Placed reports whether a snapshot of the host has the chips that processes used, or
// knows all of its own, so that they are of another one.
func (b *Builder) Placed(host *model.Snapshot) bool {
	for i := range host.Devices {
		chips := host.Devices[i].Chips
		if len(chips) > 0 && !slices.ContainsFunc(chips, func(c model.Chip) bool { return !c.ID.Known() }) {
			continue
		}
		for _, e := range b.last { // it may be this one
			if slices.ContainsFunc(e.ledger.Chips, func(c ledgerfile.Chip) bool { return host.DeviceOf(c.ID) == model.NoDevice }) {
				return false
			}
		}
	}
	return true
}

// Now is what all running processes hold, by chip and pool. It also counts
// towards the peaks of chips that several processes use.
func (b *Builder) Now(at time.Time) map[uint64]map[model.Pool]uint64 {
	sums := map[uint64]map[model.Pool]uint64{}
	for _, e := range b.last {
		if !e.running {
			continue
		}
		for i := range e.ledger.Lists {
			l := &e.ledger.Lists[i]
			pool, ok := blocks.Summed(e.ledger, l)
			if l.State != ledgerfile.Open || !ok {
				continue
			}
			ids := blocks.ChipsOf(e.ledger, l)
			if len(ids) == 0 {
				ids = []uint64{blocks.UnknownChip}
			}
			for _, id := range ids {
				if sums[id] == nil {
					sums[id] = map[model.Pool]uint64{}
				}
				sums[id][pool] += l.Live.Bytes * uint64(l.Banks)
			}
		}
	}
	all := map[model.Pool]uint64{}
	for id, pools := range sums {
		for pool, n := range pools {
			all[pool] += n
			b.raise(chipPool{id, pool}, peak{n, at})
		}
	}
	for pool, n := range all {
		b.raise(chipPool{pool: pool}, peak{n, at})
	}
	return sums
}

// raise notes a sum over processes, if it is the highest.
func (b *Builder) raise(at chipPool, x peak) {
	if x.bytes > b.sampled[at].bytes {
		b.sampled[at] = x
	}
}

// Report sums up a run that ended then, on a host as a snapshot has it; nil: it is not
// known. The caller fills in what is known of the program itself.
func (b *Builder) Report(ended time.Time, host *model.Snapshot) *Report {
	if host == nil {
		host = &model.Snapshot{}
	}
	r := &Report{Schema: Schema, Method: Nothing, Run: runs.Run{
		Host: host.Host.Name, Start: b.started, Last: ended, Processes: []runs.Process{}, Neighbours: []runs.Neighbour{}, Left: []runs.Left{},
	}}
	r.Run.UID = -1
	all := newAccount(host)
	for _, path := range b.order {
		e := b.last[path]
		own := b.account(&e, ended, host)
		p := process(&e)
		p.Ledger.Devices = own.devices()
		list := failures(e.ledger, p.Ledger.Release)
		for _, f := range list {
			p.Failures += f.Count
		}
		r.Run.Processes, r.Failures = append(r.Run.Processes, p), append(r.Failures, list...)
		all.merge(own, b.sampled)
	}
	r.Run.Pools, r.Run.Devices = all.everywhere(), all.devices()
	if len(b.order) > 0 {
		r.Method = Ledger
		r.Run.Release = slices.Concat(r.Releases(), []string{""})[0]
	}
	r.addFailures(host)
	return r
}

// process is what a ledger says of its process.
func process(e *entry) runs.Process {
	l := e.ledger
	return runs.Process{PID: l.PID, StartTicks: l.StartTicks, Start: l.Started, Name: l.Comm, Ledger: &runs.ProcessLedger{
		Release: release(l.Library), Running: e.running,
		Killed: !e.running && l.Flags&ledgerfile.Ended == 0, Stacks: l.Flags&(ledgerfile.StacksOn|ledgerfile.NativeOn) != 0,
		Lost: l.Lost, Unsure: l.Unknown > 0 || l.Flags&ledgerfile.Late != 0, PerCoreL1: l.Flags&ledgerfile.PerCore != 0,
	}}
}

// failures are the requests of a process that failed.
func failures(l *ledgerfile.Ledger, release string) (list []*failure.Record) {
	for i := range l.Failures {
		who := failure.Process{PID: l.PID, Start: l.StartTicks, UID: -1, Name: l.Comm, Release: release}
		if r, ok := failure.FromLedger(l, &l.Failures[i], who); ok {
			list = append(list, r)
		}
	}
	return list
}

// addFailures sorts the requests that failed, and sums them up.
func (r *Report) addFailures(host *model.Snapshot) {
	if r.Method != Ledger {
		return
	}
	slices.SortStableFunc(r.Failures, func(a, b *failure.Record) int { return a.Last.Compare(b.Last) })
	sum := &runs.Failures{}
	for _, f := range r.Failures {
		f.ResolveChips(host)
		sum.Count += f.Count
		sum.Last, sum.Pool, sum.Clash = f.Last, f.Pool, f.Kind == failure.Clash
	}
	r.Run.Failures = sum
}
