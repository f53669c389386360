package collect

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// work measures how busy chips are: by what processes report of the programs
// that ran, from one snapshot to the next.
type work struct {
	samples map[workKey]*workSample
	totals  map[totalKey]*workTotal
	// dispatch compares with the dispatch cores' account, by PCI address.
	dispatch map[string]*dispatchCheck
	last     time.Time // of the snapshot before
	// engines are those of drivers that account for them, as of the last measurement.
	engines map[proc.EngineUser]*engineSample
}

type workKey struct {
	process model.ProcessID
	chip    uint64
}

type totalKey struct {
	busID string
	slot  int
}

// workTotal is what ran on a chip since it was first seen to report.
type workTotal struct {
	busy, programs uint64
	bound          model.Bound
	cause          model.WorkCause // of a bound that is not exact
	// silent are processes that have the device open and have reported nothing of the
	// chip so far. Those that end so may have had it do anything.
	silent map[model.ProcessID]bool
}

// doubt makes the totals no better than a bound.
func (t *workTotal) doubt(bound model.Bound, cause model.WorkCause) {
	if bound > t.bound {
		t.bound, t.cause = bound, cause
	}
}

// on is w with the totals. "At least nothing" says nothing.
func (t workTotal) on(w model.Work) model.Work {
	if t.bound != model.Exact && t.programs == 0 {
		none := model.NoWork(t.cause)
		w.BusyTime, w.ProgramSum = none.BusyTime, none.ProgramSum
		return w
	}
	return w.WithTotals(t.busy, t.programs, t.bound)
}

// workSample is what a process had reported of a chip, and what was made of it.
type workSample struct {
	claim.Work
	ops     map[string]claim.Op
	shown   model.ChipWork
	settled bool // nothing ran then
	// atRecord is what had gone unseen when its last record came, at least.
	atRecord unseen
	ahead    time.Duration // hostAhead by then
	used     bool
}

// workJoin makes the part of one snapshot that is about programs.
type workJoin struct {
	*work
	snap    *model.Snapshot
	sets    []claim.Set
	engines engineTimes
	place   func(chip uint64) (at chipAt, ok bool)
	may     func(*model.Process, *model.Device) bool
	idle    func(device int) bool      // according to the driver no process has it open
	iommu   func(d *model.Device) bool // false: it is certain that it has none

	hosts   map[model.ProcessID]hostWitness
	deafTo  map[model.ProcessID]model.HostCause // why what a process enqueues and waits for is not seen
	listens map[model.ProcessID]model.WorkCause // why the programs of a process are not seen; empty: they are
	on      map[chipAt][]*model.ChipWork
}

func (j *workJoin) run() {
	if j.samples == nil {
		j.samples, j.totals, j.dispatch = map[workKey]*workSample{}, map[totalKey]*workTotal{}, map[string]*dispatchCheck{}
	}
	j.hosts, j.listens, j.on = map[model.ProcessID]hostWitness{}, map[model.ProcessID]model.WorkCause{}, map[chipAt][]*model.ChipWork{}
	j.deafTo = map[model.ProcessID]model.HostCause{}
	for i := range j.sets {
		j.readHosts(&j.sets[i])
	}
	for i := range j.snap.Processes {
		j.addProcess(&j.snap.Processes[i])
	}
	j.addEngines()
	for i := range j.snap.Devices {
		j.addDevice(i)
	}
	for key, s := range j.samples {
		if !s.used {
			delete(j.samples, key)
		}
		s.used = false
	}
	j.last = j.snap.Time
}

func (j *workJoin) readHosts(set *claim.Set) {
	for _, h := range set.Hosts {
		// libttmon is inside of the calls, and sees the names of what is enqueued, too.
		if old, known := j.hosts[h.Process]; !known || old.source != model.FromTrack {
			j.hosts[h.Process] = hostWitness{h.HostWork, set.Source}
		}
	}
	for _, l := range set.Listens {
		if why, known := j.listens[l.Process]; !known || why != "" {
			j.listens[l.Process] = l.Why
		}
		if l.Host != model.HostNotWatched {
			j.deafTo[l.Process] = l.Host
		}
	}
}

// hostWitness is what one source says of what a process enqueues and waits for.
type hostWitness struct {
	model.HostWork
	source model.Source
}

// witness is what one source says of a chip of a process.
type witness struct {
	*claim.Work
	source model.Source
}

// betterWitness reports whether a is to be believed rather than b, of the same
// process and chip: they are never added. What cannot be read says nothing.
// libttmon sees every record, and the host too; ttmond's probe may lose some.
func betterWitness(a, b witness) bool {
	if a.Unreadable != b.Unreadable {
		return b.Unreadable
	}
	return a.source == model.FromTrack && b.source != model.FromTrack
}

// witnesses are the claims that count for a process, one for each chip.
func (j *workJoin) witnesses(id model.ProcessID) (list []witness) {
	at := map[uint64]int{}
	for i := range j.sets {
		for k := range j.sets[i].Work {
			w := witness{&j.sets[i].Work[k], j.sets[i].Source}
			if w.Process != id {
				continue
			}
			if n, ok := at[w.Chip]; !ok {
				at[w.Chip] = len(list)
				list = append(list, w)
			} else if betterWitness(w, list[n]) {
				list[n] = w
			}
		}
	}
	return list
}

// addProcess measures what a process had its chips do.
func (j *workJoin) addProcess(p *model.Process) {
	if h, ok := j.hosts[p.ID()]; ok {
		p.Work.Watched, p.Work.Host = true, h.HostWork
	} else {
		p.Work.HostCause = j.deafTo[p.ID()]
	}
	for _, w := range j.witnesses(p.ID()) {
		p.Work.Chips = append(p.Work.Chips, j.measure(p, w.Work, w.source))
	}
	slices.SortFunc(p.Work.Chips, func(a, b model.ChipWork) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Chip, b.Chip), cmp.Compare(a.ChipID, b.ChipID))
	})
	for i := range p.Work.Chips {
		j.locate(p, &p.Work.Chips[i])
	}
}

// locate notes on which chip of the host a process works. One that does not
// have the device open may not speak for it.
func (j *workJoin) locate(p *model.Process, c *model.ChipWork) {
	if c.Device == model.NoDevice {
		return
	}
	if at, ok := j.place(c.ChipID); ok && j.may(p, &j.snap.Devices[at.device]) {
		j.on[at] = append(j.on[at], c)
	}
}

// minWindow is the shortest time that a share of it says something about.
const minWindow = 100 * time.Millisecond

// measure makes a figure of what a process reports of a chip.
func (j *workJoin) measure(p *model.Process, c *claim.Work, source model.Source) model.ChipWork {
	key := workKey{c.Process, c.Chip}
	before := j.samples[key]
	if before != nil && before.shown.Source != source {
		before = nil // another witness has counted since another time
	}
	if before != nil && c.At.Sub(before.At) < minWindow {
		before.used = true
		return before.shown
	}
	out := model.ChipWork{
		Device: model.NoDevice, ChipID: c.Chip, Source: source,
		Longest: c.Longest.Seconds(), LongestName: c.LongestName, LongestGap: c.LongestGap.Seconds(),
		LastName: c.LastName, LastRecord: c.LastRecord, Since: c.Since, Stalled: uint64(max(0, c.Stalled)),
	}
	if at, ok := j.place(c.Chip); ok {
		d := &j.snap.Devices[at.device]
		out.Device, out.Chip = d.Index, d.Chips[at.slot].Name
		if j.may(p, d) {
			j.addTotal(totalKey{d.BusID, at.slot}, c, before)
		}
	}
	var host *model.HostWork
	if p.Work.Watched && source == j.hosts[p.ID()].source {
		host = &p.Work.Host
	}
	settled := isSettled(c, host)
	out.Work = busy(c, before, settled)
	sample := &workSample{
		Work: *c, used: true, settled: settled, atRecord: unseenAtRecord(c, before), ahead: hostAhead(c, before),
		ops: make(map[string]claim.Op, len(c.Ops)),
	}
	for _, o := range c.Ops {
		sum := sample.ops[o.Name]
		sum.Calls, sum.Time, sum.Longest = sum.Calls+o.Calls, sum.Time+o.Time, max(sum.Longest, o.Longest)
		sample.ops[o.Name] = sum
	}
	out.Operations = operations(sample, before, &out.Work)
	out.Gaps, out.GapsCause = gaps(c)
	sample.shown = out
	j.samples[key] = sample
	return out
}

// gaps lists the longest pauses, and says why they may not be what they seem.
func gaps(c *claim.Work) (list []model.Gap, cause model.GapCause) {
	for _, g := range c.Gaps[:min(len(c.Gaps), model.MaxGaps)] {
		list = append(list, model.Gap{Length: uint64(max(0, g.Length)), End: g.End, After: g.After})
	}
	switch {
	case !c.GapsKept:
		return nil, model.GapsNotKept
	case len(list) == 0:
		return nil, ""
	}
	return list, model.GapCause(c.Unseen())
}

func (j *workJoin) total(key totalKey) *workTotal {
	t := j.totals[key]
	if t == nil {
		t = &workTotal{silent: map[model.ProcessID]bool{}}
		j.totals[key] = t
	}
	return t
}

// addTotal adds what was done since the last sample to the chip's account. What
// a process did before ttmon saw it counts where it began after the last look.
func (j *workJoin) addTotal(key totalKey, c *claim.Work, before *workSample) {
	t := j.total(key)
	if cause := c.Unseen(); cause != "" {
		t.doubt(model.AtLeast, cause)
	}
	var busy, programs uint64
	switch {
	case before != nil && c.Busy >= before.Busy && c.Programs >= before.Programs:
		busy, programs = uint64(c.Busy-before.Busy), c.Programs-before.Programs
		// A chip cannot have worked longer than since its last record.
		if limit := c.At.Sub(lastKnown(&before.Work)); busy > uint64(max(0, limit)) {
			if busy > uint64(max(0, limit+slack(limit))) {
				t.doubt(model.Unsure, model.WorkTooMuch)
			}
			busy = uint64(max(0, limit))
		}
	case before == nil && !j.last.IsZero() && c.Since.After(j.last):
		busy, programs = uint64(min(c.Busy, max(0, c.At.Sub(c.Since)))), c.Programs
	}
	t.busy += busy
	t.programs += programs
}

// maxOperations is how many operations of a process and chip a snapshot has.
const maxOperations = 32

// operations lists what the programs were, the most expensive first. Their shares
// are of the window that w is about, and have its bound.
func operations(now, before *workSample, w *model.Work) []model.Operation {
	list := make([]model.Operation, 0, len(now.ops))
	pending := model.Missing[float64](model.Pending, model.WorkFirstSample.Why())
	counted := 1.0 // of what was reported, the part that is in the window for certain
	if before != nil && w.Busy.Known() && now.Busy > before.Busy {
		counted = min(1, w.Busy.V*w.Window/(now.Busy-before.Busy).Seconds())
	}
	for name, o := range now.ops {
		x := model.Operation{
			Name: name, Calls: o.Calls, Time: uint64(max(0, o.Time)), Longest: uint64(max(0, o.Longest)),
			Share: pending, Rate: pending,
		}
		if before != nil {
			old, s := before.ops[name], w.Window
			if !w.Busy.Known() {
				s = now.At.Sub(before.At).Seconds()
			}
			x.Share = model.Value(min(1, max(0, (o.Time-old.Time).Seconds()*counted/s)))
			x.Rate = model.Value(float64(o.Calls-min(o.Calls, old.Calls)) / s)
			if !w.Busy.Known() {
				x.Share = w.Busy
			}
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b model.Operation) int {
		return cmp.Or(cmp.Compare(b.Share.V, a.Share.V), cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	if len(list) <= maxOperations {
		return list
	}
	rest := model.Operation{Others: len(list) - maxOperations + 1, Share: list[0].Share, Rate: list[0].Rate}
	rest.Share.V, rest.Rate.V = 0, 0
	for _, x := range list[maxOperations-1:] {
		rest.Calls, rest.Time, rest.Longest = rest.Calls+x.Calls, rest.Time+x.Time, max(rest.Longest, x.Longest)
		rest.Share.V, rest.Rate.V = min(1, rest.Share.V+x.Share.V), rest.Rate.V+x.Rate.V
	}
	return append(list[:maxOperations-1:maxOperations-1], rest)
}
