package keep

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// sample is what a snapshot says of one device; the next snapshot is compared with it.
type sample struct {
	Power, Temperature, Clock, Activity model.Reading[float64]
	To, From                            model.Reading[uint64] // PCIe bytes
	State                               model.State
	Condition                           model.ConditionKind
}

// addSnapshot adds a snapshot in which the run has devices open. seconds is the time
// since the one before; gap: it is too long to know what happened in it.
func (l *live) addSnapshot(s *model.Snapshot, mine []*model.Process, conditions map[int]model.ConditionKind, seconds float64, gap bool) {
	switch {
	case l.Seen.Equal(s.Time): // the first one
	case gap:
		if lost := s.Time.Sub(l.Last).Seconds(); lost > 0 {
			l.Unseen += lost
		}
		clear(l.before)
		clear(l.devices)
	default:
		l.Observed += seconds
		l.Step = max(l.Step, seconds)
	}
	l.Last = s.Time
	l.addProcesses(mine)
	held, open := sumMemory(s, mine)
	// Sorted, because chips are appended to the account in this order.
	for _, at := range slices.SortedFunc(maps.Keys(held), place.compare) {
		sum := held[at]
		var now model.PoolBytes
		for pool := range now {
			now[pool] = sum[pool].Bytes()
		}
		foldPools(l.pools(s, at), l.before[at], now, s.Time, seconds)
		l.before[at] = now
	}
	for at := range l.before {
		if held[at] == nil {
			delete(l.before, at)
		}
	}
	l.addWork(s, mine)
	clear(l.counted)
	for index := range open {
		if d := s.Device(index); d != nil {
			l.addDevice(s, d, conditions[index], seconds)
		}
	}
	for index := range l.devices {
		if !open[index] {
			delete(l.devices, index)
		}
	}
}

// addProcesses notes the processes of the run. The first one says whose run it is.
func (l *live) addProcesses(mine []*model.Process) {
	slices.SortStableFunc(mine, func(a, b *model.Process) int { return cmp.Compare(a.StartTicks, b.StartTicks) })
	here := map[model.ProcessID]bool{}
	for _, p := range mine {
		here[p.ID()] = true
		i := slices.IndexFunc(l.Processes, func(x runs.Process) bool { return x.PID == p.PID && x.StartTicks == p.StartTicks })
		switch {
		case i >= 0:
			l.Processes[i].Name = p.Name.V
		case len(l.Processes) >= maxProcesses:
			l.Dropped++
		default:
			i = len(l.Processes)
			l.Processes = append(l.Processes, runs.Process{PID: p.PID, StartTicks: p.StartTicks, Parent: p.PPID, Start: p.StartTime, Name: p.Name.V})
		}
		l.failed(p.ID(), p.Failures)
		if i == 0 {
			l.Who = who(p, l.Who)
		}
	}
	l.members = here
}

// who returns who runs a process. What is no longer known keeps its old value: a
// process that exits loses its command line first.
func who(p *model.Process, old runs.Who) runs.Who {
	w := runs.Who{
		UID: old.UID, User: old.User, Name: cmp.Or(p.Name.V, old.Name), Command: cmp.Or(truncate(p.Cmdline.V), old.Command),
		Container: cmp.Or(p.Container.ID, old.Container), Unit: cmp.Or(p.SystemdUnit, old.Unit), Job: jobOf(p), Release: cmp.Or(p.Release.V, old.Release),
		FullName: cmp.Or(p.Reach.FullName, old.FullName), TTY: cmp.Or(p.Reach.TTY, old.TTY), SSH: cmp.Or(p.Reach.SSH, old.SSH), Dir: cmp.Or(p.Reach.Dir, old.Dir),
	}
	if uid, known := p.UID.Get(); known {
		if uid != w.UID { // it has become another user, whose name may not be known
			w.UID, w.User = uid, ""
		}
		w.User = cmp.Or(p.User.V, w.User)
	}
	if w.Job == nil {
		w.Job = old.Job
	}
	return w
}

// truncate limits a command line, which may be of any length.
func truncate(s string) string {
	if len(s) <= maxCommand {
		return s
	}
	return strings.ToValidUTF8(s[:maxCommand], "") // a character may be cut in two
}

func jobOf(p *model.Process) *runs.Job {
	switch {
	case p.SlurmJob != "":
		return &runs.Job{Kind: runs.JobSlurm, ID: p.SlurmJob, Step: p.SlurmStep, Name: p.Reach.JobName, From: p.SlurmFrom}
	case p.Container.Pod != "":
		return &runs.Job{Kind: runs.JobPod, ID: p.Container.Pod, Name: p.Container.PodName, Namespace: p.Container.Namespace}
	}
	return nil
}

// sumMemory adds up what processes hold: in total, on each device, and on each chip of
// devices with several. open are the devices that they have open.
func sumMemory(s *model.Snapshot, mine []*model.Process) (held map[place]*[model.NumPools]model.Sum, open map[int]bool) {
	held, open = map[place]*[model.NumPools]model.Sum{}, map[int]bool{}
	add := func(at place, b *model.PoolBytes) {
		if held[at] == nil {
			held[at] = new([model.NumPools]model.Sum)
		}
		for pool := range b {
			held[at][pool].Add(b[pool])
		}
	}
	for _, p := range mine {
		for i := range p.Devices {
			u := &p.Devices[i]
			open[u.Device] = true
			add(everywhere, &u.Memory)
			add(place{device: u.Device}, &u.Memory)
			if d := s.Device(u.Device); d != nil && len(d.Chips) < 2 {
				continue
			}
			for c := range u.Chips {
				add(place{u.Device, u.Chips[c].ChipID}, &u.Chips[c].Memory)
			}
		}
	}
	return held, open
}

// pools returns the account of a place, and adds one for a new chip.
func (l *live) pools(s *model.Snapshot, at place) map[string]runs.Pool {
	if at == everywhere {
		return l.Pools
	}
	d := l.device(s, at.device)
	if at.chip == 0 {
		return d.Pools
	}
	id := strconv.FormatUint(at.chip, 10)
	i := slices.IndexFunc(d.Chips, func(c runs.Chip) bool { return c.ID == id })
	if i < 0 {
		i = len(d.Chips)
		d.Chips = append(d.Chips, runs.Chip{ID: id, Name: chipName(s, at), Pools: map[string]runs.Pool{}})
	}
	return d.Chips[i].Pools
}

func chipName(s *model.Snapshot, at place) string {
	if _, c := s.Chip(at.chip); c != nil {
		return c.Name
	}
	return ""
}

// device returns the account of a device, and adds one if there is none. If another
// board has got the index since, that board has an account of its own.
func (l *live) device(s *model.Snapshot, index int) *runs.Device {
	d := s.Device(index)
	for i := len(l.Devices) - 1; i >= 0; i-- {
		if x := &l.Devices[i]; x.Index == index && (d == nil || x.BusID == "" || x.BusID == d.BusID) {
			return x
		}
	}
	at, _ := slices.BinarySearchFunc(l.Devices, index+1, func(e runs.Device, target int) int { return cmp.Compare(e.Index, target) })
	l.Devices = slices.Insert(l.Devices, at, runs.NewDevice(s, index))
	return &l.Devices[at]
}

// foldPools updates peaks and means with what is held now. A mean is made of samples,
// of the part of the run in which there were any: it is never exact.
func foldPools(pools map[string]runs.Pool, before, now model.PoolBytes, at time.Time, seconds float64) {
	for _, pool := range model.Pools() {
		n, bound, ok := now[pool].Best()
		if !ok {
			continue
		}
		name := pool.String()
		p := pools[name]
		p.Held, p.HeldBound = n, bound.String()
		if p.PeakBound == "" || n > p.Peak {
			// Between two snapshots it may have been more.
			p.Peak, p.PeakBound, p.PeakAt = n, max(bound, model.AtLeast).String(), at
		}
		if old, _, was := before[pool].Best(); was && seconds > 0 {
			p.Mean += ((float64(old)+float64(n))/2 - p.Mean) * seconds / (p.Seconds + seconds)
			p.Seconds += seconds
			p.MeanBound = model.Unsure.String()
		}
		pools[name] = p
	}
}

// addDevice adds the readings of a device.
func (l *live) addDevice(s *model.Snapshot, d *model.Device, condition model.ConditionKind, seconds float64) {
	at, x := s.Time, l.device(s, d.Index)
	now := sample{
		Power: d.Power, Temperature: d.Temperature, Clock: d.AICLK, Activity: d.Activity.Ratio,
		To: d.PCIe.ToDeviceTotal, From: d.PCIe.FromDeviceTotal, State: d.State, Condition: condition,
	}
	before, known := l.devices[d.Index]
	l.devices[d.Index] = now
	if !known {
		seconds = 0
	}
	x.Open += seconds
	l.counted[d.Index] = seconds
	x.Power = foldStat(x.Power, before.Power, now.Power, at, seconds)
	if x.Power != nil {
		x.Energy = x.Power.Mean * x.Power.Seconds
	}
	x.Temperature = foldStat(x.Temperature, before.Temperature, now.Temperature, at, seconds)
	x.Clock = foldStat(x.Clock, before.Clock, now.Clock, at, seconds)
	x.Activity = foldStat(x.Activity, before.Activity, now.Activity, at, seconds)
	x.PCIe = foldTraffic(x.PCIe, &before, &now, known)
	if before.Condition != "" && before.Condition != model.ConditionOK && seconds > 0 {
		if x.Trouble == nil {
			x.Trouble = map[model.ConditionKind]float64{}
		}
		x.Trouble[before.Condition] += seconds
	}
	if known && now.State == model.StateResetting && before.State != model.StateResetting {
		x.Resets++
	}
}

// foldStat updates a maximum and a mean with a value; before is what it was seconds
// ago. A nil Stat has had no value yet.
func foldStat(s *runs.Stat, before, now model.Reading[float64], at time.Time, seconds float64) *runs.Stat {
	v, known := now.Get()
	if !known {
		return s
	}
	if s == nil {
		s = &runs.Stat{Max: v, MaxAt: at}
	}
	if v > s.Max {
		s.Max, s.MaxAt = v, at
	}
	if old, was := before.Get(); was && seconds > 0 {
		s.Mean += ((old+v)/2 - s.Mean) * seconds / (s.Seconds + seconds)
		s.Seconds += seconds
	}
	return s
}

// foldTraffic adds the traffic between two snapshots. ttmond counts totals from its
// own start: after a restart they begin at 0, and traffic in between is missing.
// known: there was a snapshot before.
func foldTraffic(p *runs.PCIe, before, now *sample, known bool) *runs.PCIe {
	to, toKnown := now.To.Get()
	from, fromKnown := now.From.Get()
	if !toKnown || !fromKnown {
		if p != nil {
			p.Bound = model.AtLeast.String()
		}
		return p
	}
	if p == nil { // the first sample
		return &runs.PCIe{Bound: model.Exact.String()}
	}
	wasTo, toKnown := before.To.Get()
	wasFrom, fromKnown := before.From.Get()
	switch {
	case !known || !toKnown || !fromKnown:
		p.Bound = model.AtLeast.String()
	case to < wasTo || from < wasFrom:
		p.ToDevice, p.FromDevice, p.Bound = p.ToDevice+to, p.FromDevice+from, model.AtLeast.String()
	default:
		p.ToDevice, p.FromDevice = p.ToDevice+to-wasTo, p.FromDevice+from-wasFrom
	}
	return p
}

// conditionsOf returns the condition of each device, by index.
func conditionsOf(s *model.Snapshot) map[int]model.ConditionKind {
	a := assess.Of(s)
	out := map[int]model.ConditionKind{}
	for i := range s.Devices {
		out[s.Devices[i].Index] = a.Device(s.Devices[i].Index).Kind
	}
	return out
}

// noteSharing notes which runs have a device open at the same time.
func (t *tracker) noteSharing(s *model.Snapshot, present map[*live][]*model.Process) {
	users := map[int][]*live{}
	for _, l := range t.live { // not over present: maps have no order
		seen := map[int]bool{}
		for _, p := range present[l] {
			for i := range p.Devices {
				if index := p.Devices[i].Device; index != model.NoDevice && !seen[index] {
					seen[index] = true
					users[index] = append(users[index], l)
				}
			}
		}
	}
	type pair struct{ a, b *live }
	done := map[pair]bool{}
	for i := range s.Devices {
		index := s.Devices[i].Index
		list := users[index]
		if len(list) < 2 {
			continue
		}
		for _, a := range list {
			longest := 0.0
			for _, b := range list {
				if a == b {
					continue
				}
				seconds := min(a.counted[index], b.counted[index])
				longest = max(longest, seconds)
				a.addNeighbour(b, index, seconds, !done[pair{a, b}])
				done[pair{a, b}] = done[pair{a, b}] || seconds > 0
			}
			a.device(s, index).Shared += longest
			a.noteJob(s, list, index)
		}
	}
}

// noteJob notes what the runs of a job hold of a device together. users are all that
// have it open.
func (l *live) noteJob(s *model.Snapshot, users []*live, index int) {
	job, ok := l.JobKey()
	if !ok {
		return
	}
	var sums [model.NumPools]model.Sum
	others := false
	for _, u := range users {
		if k, ok := u.JobKey(); !ok || k != job {
			continue
		}
		others = others || u != l
		for pool, b := range u.before[place{device: index}] {
			sums[pool].Add(b)
		}
	}
	if !others {
		return
	}
	d := l.device(s, index)
	if d.Together == nil {
		d.Together = map[string]runs.Peak{}
	}
	for _, pool := range model.Pools() {
		n, bound, known := sums[pool].Bytes().Best()
		if old, was := d.Together[pool.String()]; known && (!was || n > old.Bytes) {
			// Between two snapshots it may have been more.
			d.Together[pool.String()] = runs.Peak{Bytes: n, Bound: max(bound, model.AtLeast).String(), At: s.Time}
		}
	}
}

// addNeighbour notes that another run has the same device open. Time that they share
// on several devices counts once: count is false for the others.
func (l *live) addNeighbour(other *live, index int, seconds float64, count bool) {
	i := slices.IndexFunc(l.Neighbours, func(n runs.Neighbour) bool { return n.ID == other.ID })
	if i < 0 {
		if len(l.Neighbours) >= maxNeighbours {
			l.MoreNeighbours = true
			return
		}
		i = len(l.Neighbours)
		l.Neighbours = append(l.Neighbours, runs.Neighbour{ID: other.ID, Devices: []int{}})
	}
	n := &l.Neighbours[i]
	n.UID, n.User, n.Name = other.UID, other.User, other.Name
	if !slices.Contains(n.Devices, index) {
		n.Devices = append(n.Devices, index)
	}
	if count {
		n.Seconds += seconds
	}
}
