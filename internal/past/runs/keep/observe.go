package keep

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Bounds of what a user can make us keep.
const (
	maxProcesses   = 64 // by name for each run
	maxNeighbours  = 16
	maxLeft        = 64
	maxLivePerUID  = 512 // runs of a user at one time
	maxCommand     = 1024
	minGap         = 3 * time.Second // without a snapshot: nothing is known of the time between
	gapIntervals   = 3               // one late snapshot is no gap
	settleFor      = 5 * time.Second // after its end: until what it left has been seen
	rememberClosed = 512             // runs that may come back because their process lives
	bootSlack      = 2 * time.Second // a process that began later than that after a run was last seen is of another boot
)

// live is a run that is being observed.
type live struct {
	runs.Run
	members map[model.ProcessID]bool  // that are there now
	before  map[place]model.PoolBytes // held at the last snapshot
	devices map[int]sample            // at the last snapshot, by index
	counted map[int]float64           // seconds that the last snapshot added to each device
	gone    time.Time                 // since when no process of it is there; zero: one is
}

// place is where memory is held: on a chip, on a device as a whole (chip 0), or
// on all devices together (everywhere).
type place struct {
	device int
	chip   uint64
}

var everywhere = place{device: model.AllDevices}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.device, q.device), cmp.Compare(p.chip, q.chip))
}

// tracker finds runs in the snapshots of a host. It is not safe for concurrent use.
type tracker struct {
	next   uint64
	live   []*live // by id
	closed []*live // left their devices; the oldest first
	last   time.Time
	one    bool // all processes are of one run, which does not end
	// interval is the time between two snapshots.
	interval func() time.Duration
	ended    func(*runs.Run) // a run has ended, or what is known of one that had ended has changed
}

// observe takes a snapshot in.
func (t *tracker) observe(s *model.Snapshot) {
	dt := s.Time.Sub(t.last)
	gap := t.last.IsZero() || dt < 0 || dt > t.gap()
	seconds := dt.Seconds()
	present := t.sort(s)
	if !t.one {
		t.addUnseen(s)
	}
	conditions := conditionsOf(s)
	for _, l := range t.live {
		mine := present[l]
		if len(mine) == 0 {
			if l.gone.IsZero() {
				l.gone = s.Time
				l.leave(s, gap)
			}
			continue
		}
		l.gone, l.End = time.Time{}, runs.Ending{Kind: runs.Running}
		l.addSnapshot(s, mine, conditions, seconds, gap)
	}
	t.noteSharing(s, present)
	t.settle(s)
	t.last = s.Time
}

// gap is the time between two snapshots from which on nothing is known of it.
func (t *tracker) gap() time.Duration {
	if t.interval == nil {
		return minGap
	}
	return max(minGap, gapIntervals*t.interval())
}

// sort finds the run of each process that has a device open, and begins new ones.
func (t *tracker) sort(s *model.Snapshot) map[*live][]*model.Process {
	known := map[model.ProcessID]*live{}
	for _, l := range t.live {
		for id := range l.members {
			known[id] = l
		}
	}
	present := map[*live][]*model.Process{}
	byPID := map[int]*live{}
	var others []*model.Process
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running || len(p.Devices) == 0 {
			continue
		}
		if l := known[p.ID()]; l != nil && !p.StartTime.After(l.Last.Add(bootSlack)) {
			present[l], byPID[p.PID] = append(present[l], p), l
		} else {
			others = append(others, p)
		}
	}
	// A parent is older than its children.
	slices.SortStableFunc(others, func(a, b *model.Process) int { return cmp.Compare(a.StartTicks, b.StartTicks) })
	for _, p := range others {
		l := byPID[p.PPID]
		if l == nil && t.one && len(t.live) > 0 {
			l = t.live[0]
		}
		if l == nil {
			l = t.revive(p.ID())
		}
		if l == nil {
			l = t.begin(s, p)
		}
		if l != nil {
			l.members[p.ID()] = true
			present[l], byPID[p.PID] = append(present[l], p), l
		}
	}
	return present
}

// begin makes a run of a process; nil: its user has too many.
func (t *tracker) begin(s *model.Snapshot, p *model.Process) *live {
	uid := -1
	if p.UID.Known() {
		uid = p.UID.V
	}
	of := 0
	for _, l := range t.live {
		if l.UID == uid {
			of++
		}
	}
	if of >= maxLivePerUID {
		return nil
	}
	t.next++
	l := &live{Run: runs.Run{ID: t.next, Host: s.Host.Name, Start: p.StartTime, Seen: s.Time, Last: s.Time, End: runs.Ending{Kind: runs.Running}}}
	l.UID = uid
	if l.Start.IsZero() || l.Start.After(s.Time) {
		l.Start = s.Time
	}
	l.prepare()
	t.live = append(t.live, l)
	return l
}

// addUnseen begins runs of processes that kept a ledger and have exited before any
// snapshot saw them: what the ledger says is all that is known of them.
func (t *tracker) addUnseen(s *model.Snapshot) {
	for i := range s.Exits {
		x := &s.Exits[i]
		if x.Account == nil || x.Alive || t.knows(x.ID) {
			continue
		}
		p := model.Process{PID: x.ID.PID, StartTicks: x.ID.StartTicks, StartTime: x.Account.Start, UID: model.Value(x.Account.UID), Name: model.Value(x.Account.Name)}
		if l := t.begin(s, &p); l != nil {
			l.Name, l.Seen, l.Last, l.gone = x.Account.Name, time.Time{}, x.Account.Last, s.Time
			l.Processes = append(l.Processes, runs.Process{PID: p.PID, StartTicks: p.StartTicks, Start: p.StartTime, Name: x.Account.Name})
			l.End = runs.Ending{Kind: runs.Gone, At: x.Time}
			for _, peak := range x.Account.Peaks {
				if peak.Device != model.AllDevices {
					l.device(s, peak.Device)
				}
			}
		}
	}
}

// knows reports whether a process is of a run that was seen, or is there already.
func (t *tracker) knows(id model.ProcessID) bool {
	return slices.ContainsFunc(slices.Concat(t.live, t.closed), func(l *live) bool { return l.process(id) >= 0 })
}

// process is the number of a process in the list of the run's; -1: it is none of them.
func (l *live) process(id model.ProcessID) int {
	return slices.IndexFunc(l.Processes, func(p runs.Process) bool { return p.PID == id.PID && p.StartTicks == id.StartTicks })
}

// prepare makes the parts that are never nil.
func (l *live) prepare() {
	l.members, l.before, l.devices, l.counted = map[model.ProcessID]bool{}, map[place]model.PoolBytes{}, map[int]sample{}, map[int]float64{}
	if l.Pools == nil {
		l.Pools = map[string]runs.Pool{}
	}
	l.Processes, l.Devices = notNil(l.Processes), notNil(l.Devices)
	l.Neighbours, l.Left = notNil(l.Neighbours), notNil(l.Left)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// revive takes a run back whose process had left its devices, and has opened one
// again.
func (t *tracker) revive(id model.ProcessID) *live {
	for i, l := range t.closed {
		if slices.ContainsFunc(l.Processes, func(p runs.Process) bool { return p.PID == id.PID && p.StartTicks == id.StartTicks }) {
			t.closed = slices.Delete(t.closed, i, i+1)
			t.live = append(t.live, l)
			slices.SortFunc(t.live, func(a, b *live) int { return cmp.Compare(a.ID, b.ID) })
			l.prepare()
			return l
		}
	}
	return nil
}

// settle ends the runs that have left, once what they left behind had time to
// show.
func (t *tracker) settle(s *model.Snapshot) {
	for _, l := range t.live {
		l.find(s)
	}
	var stay []*live
	for _, l := range t.live {
		if t.one || l.gone.IsZero() || s.Time.Sub(l.gone) < settleFor && s.Time.After(l.gone.Add(-time.Second)) {
			stay = append(stay, l)
			continue
		}
		t.ended(&l.Run)
		t.closed = append(t.closed, l)
	}
	t.live = stay
	if over := len(t.closed) - rememberClosed; over > 0 {
		t.closed = slices.Delete(t.closed, 0, over)
	}
	for _, l := range t.closed {
		if l.find(s) {
			t.ended(&l.Run)
		}
	}
}

// leave notes that no process of the run has a device any more.
func (l *live) leave(s *model.Snapshot, unwatched bool) {
	l.End = runs.Ending{Kind: runs.Gone, At: s.Time}
	if unwatched {
		l.End.Kind = runs.Unseen
	}
	for index, before := range l.devices {
		d := s.Device(index)
		l.End.Reset = l.End.Reset || d != nil && !unwatched && d.State == model.StateResetting && before.State != model.StateResetting
	}
	clear(l.before)
	clear(l.devices)
}

// find looks for how the run ended and what it left, and reports whether there is
// anything new.
func (l *live) find(s *model.Snapshot) (found bool) {
	if !l.gone.IsZero() && l.End.Code == nil && l.End.Signal == 0 {
		for i := range s.Exits {
			if x := &s.Exits[i]; len(l.Processes) > 0 && x.ID.PID == l.Processes[0].PID && x.ID.StartTicks == l.Processes[0].StartTicks {
				before := l.End
				exit(&l.End, x)
				found = found || l.End != before
			}
		}
	}
	for i := range s.Exits {
		x := &s.Exits[i]
		if l.failed(x.ID, x.Failures) {
			found = true
		}
		if l.addAccount(s, x) {
			found = true
		}
	}
	if l.Blame() {
		found = true
	}
	for i := range s.StaleSlots {
		if l.leftBy(&s.StaleSlots[i]) {
			found = true
		}
	}
	return found
}

// exit takes in what is known of the exit of the run's first process.
func exit(e *runs.Ending, x *model.Exit) {
	if x.Alive {
		e.Kind = runs.Closed
		return
	}
	e.Kind, e.At = runs.Exited, x.Time
	e.Unknown = ""
	status, known := x.Status.Get()
	switch {
	case !known && x.Status.Status == model.Unsupported:
		e.Unknown = runs.OldKernel
	case !known:
		e.Unknown = runs.OnlyParent
	case status&0x7f != 0:
		e.Kind, e.Signal = runs.Killed, status&0x7f
	default:
		code := status >> 8 & 0xff
		e.Code = &code
	}
	e.OutOfMemory = x.OutOfMemory
	// People who reset a device often stop the program that has it open first.
	e.Reset = e.Reset && !e.Stopped() && !e.OutOfMemory && (e.Code == nil || *e.Code != 0)
}

// failed notes the failed allocations of a process, if it is one of this run, and
// reports whether there are more than were known.
func (l *live) failed(id model.ProcessID, f *model.Failures) bool {
	if f == nil {
		return false
	}
	i := l.process(id)
	if i < 0 {
		return false
	}
	known := l.Failures != nil
	if !known {
		l.Failures = &runs.Failures{}
	}
	p, sum := &l.Processes[i], l.Failures
	if f.Count <= p.Failures {
		return !known
	}
	sum.Count += f.Count - p.Failures
	p.Failures = f.Count
	if !f.Last.Before(sum.Last) {
		sum.Last, sum.ID, sum.Pool, sum.Clash = f.Last, f.ID, f.Pool, f.Clash
	}
	return true
}

// addAccount takes in the peaks that the ledger of a process of this run has, and
// reports whether one was not known so well. They are those of the run where it had no
// other process; else it held so much at least.
func (l *live) addAccount(s *model.Snapshot, x *model.Exit) (found bool) {
	if x.Account == nil || x.Account.UID != l.UID || l.process(x.ID) < 0 {
		return false
	}
	least := model.Exact
	if len(l.Processes) > 1 || l.Dropped > 0 {
		least = model.AtLeast
	}
	for _, peak := range x.Account.Peaks {
		n, bound, known := peak.Bytes.Best()
		at := place{peak.Device, peak.ChipID}
		if !known || at.chip != 0 && !l.hasChips(x.Account, at.device) {
			continue
		}
		bound = max(bound, least)
		pools := l.pools(s, at)
		p := pools[peak.Pool]
		old := model.ParseBound(p.PeakBound)
		if p.PeakBound == "" || n > p.Peak || n == p.Peak && bound < old || bound == model.Exact && old == model.Unsure {
			p.Peak, p.PeakBound, p.PeakAt = n, bound.String(), peak.At
			pools[peak.Pool], found = p, true
		}
	}
	return found
}

// hasChips reports whether an account has several chips of a device.
func (l *live) hasChips(a *model.Account, device int) bool {
	chips := map[uint64]bool{}
	for _, p := range a.Peaks {
		if p.Device == device && p.ChipID != 0 {
			chips[p.ChipID] = true
		}
	}
	return len(chips) > 1
}

// leftBy notes what a dead process left, if it was one of this run.
func (l *live) leftBy(g *model.StaleSlot) bool {
	alive := func(p *runs.Process) bool {
		return l.gone.IsZero() && l.members[model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}]
	}
	known := slices.ContainsFunc(l.Left, func(x runs.Left) bool { return x.PID == g.PID && x.Region == g.Region })
	if known || len(l.Left) >= maxLeft || !l.Wrote(g, alive) {
		return false
	}
	x := runs.NewLeft(g)
	if len(x.Bytes) == 0 {
		return false
	}
	l.Left = append(l.Left, x)
	return true
}
