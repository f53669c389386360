package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// JobsSchema names the JSON of runs that are grouped by their jobs.
const JobsSchema = "ttmon.jobs/1"

// JobsAnswer is a list of jobs.
type JobsAnswer struct {
	Schema string     `json:"schema"`
	Time   time.Time  `json:"time"`
	Jobs   []JobGroup `json:"jobs"` // the oldest first
	More   bool       `json:"more"` // runs of older jobs match, too, and were left out
}

// JobGroup is a job: the runs of its processes, and what they took together.
type JobGroup struct {
	Job
	UID     int         `json:"uid"` // -1: not known, or a pod's, whose processes may be of any user
	User    string      `json:"user,omitempty"`
	Steps   []string    `json:"steps,omitempty"` // of Slurm
	Start   time.Time   `json:"start"`           // of its first run
	Last    time.Time   `json:"last"`            // when one of its runs was last known to have a device
	Running bool        `json:"running"`
	Failed  int         `json:"failed"`   // runs that are known to have ended badly
	Energy  *float64    `json:"energy_j"` // of its devices while its runs had them open, as unsure as theirs; null: not known
	Devices []JobDevice `json:"devices"`  // by index
	Runs    []Run       `json:"runs"`     // the oldest first
	Holding []Holder    `json:"holding"`  // its processes that have devices open now
	Left    []LeftNow   `json:"left"`     // what its dead processes left in tt-metal's accounting
}

// JobDevice is the most that a job held of a device, over all its runs.
type JobDevice struct {
	Index int             `json:"index"`
	BusID string          `json:"bus_id,omitempty"`
	Board string          `json:"board,omitempty"`
	Peaks map[string]Peak `json:"peaks"` // by pool; without what no source accounted for
}

// Peak is the most that was held of a kind of memory.
type Peak struct {
	Bytes uint64    `json:"bytes"`
	Bound string    `json:"bound"`
	At    time.Time `json:"at"`
}

// Peak is the most that was held of a pool. Missing where no source accounts for it.
func (d *JobDevice) Peak(pool model.Pool) model.Bytes {
	p, known := d.Peaks[pool.String()]
	if !known {
		return model.NoBytes(model.Absent)
	}
	return model.BoundBytes(p.Bytes, model.ParseBound(p.Bound))
}

// Holder is a live process of a job.
type Holder struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Step    string `json:"step,omitempty"`
	Devices []int  `json:"devices"` // of this host; none: its chips are behind none of them
}

// LeftNow is what a dead process of a job left, as it is now.
type LeftNow struct {
	Left
	Name  string `json:"name"`
	InUse bool   `json:"in_use"` // a live process still has the region
}

// JobKey tells jobs apart. What a user says of itself makes no job of another's.
type JobKey struct {
	kind, id string
	uid      int
}

// JobKey is that of the run's job; ok is false where it has none.
func (w *Who) JobKey() (k JobKey, ok bool) {
	if w.Job == nil {
		return k, false
	}
	k = JobKey{w.Job.Kind, w.Job.ID, -1}
	if k.kind == JobSlurm { // a pod's processes may be of any user
		k.uid = w.UID
	}
	return k, true
}

// ByJob groups runs by their jobs, the oldest job first. A job is listed if one of its
// runs matches the query, whose names are those of jobs. now is the host as it is; nil:
// it is not known what jobs hold and left.
func ByJob(list []Run, q *Query, now *model.Snapshot) []JobGroup {
	groups := map[JobKey]*JobGroup{}
	for i := range list {
		k, ok := list[i].JobKey()
		if !ok {
			continue
		}
		if groups[k] == nil {
			groups[k] = &JobGroup{UID: k.uid, Start: list[i].Start, Steps: []string{}, Devices: []JobDevice{}, Holding: []Holder{}, Left: []LeftNow{}}
		}
		groups[k].add(&list[i])
	}
	all := slices.SortedFunc(maps.Values(groups), func(a, b *JobGroup) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID), cmp.Compare(a.UID, b.UID))
	})
	all = slices.DeleteFunc(all, disbelieved(all))
	out := []JobGroup{}
	for _, g := range all {
		if slices.ContainsFunc(g.Runs, func(r Run) bool { return q.Matches(&r) && (len(q.Names) == 0 || q.Named(&r)) }) {
			g.findProcesses(now)
			out = append(out, *g)
		}
	}
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[len(out)-q.Limit:]
	}
	return out
}

// disbelieved finds jobs that only the environment of a user's processes names,
// where control groups, which only Slurm makes, say whose the job is.
func disbelieved(all []*JobGroup) func(*JobGroup) bool {
	owner := map[string]int{}
	for _, g := range all {
		if g.Kind == JobSlurm && g.From == model.JobOfCgroup {
			owner[g.ID] = g.UID
		}
	}
	return func(g *JobGroup) bool {
		uid, ok := owner[g.ID]
		return ok && g.Kind == JobSlurm && g.From == model.JobOfEnviron && g.UID != uid
	}
}

// add adds a run to its job.
func (g *JobGroup) add(r *Run) {
	before := g.Job
	g.Job, g.Step = *r.Job, ""
	g.Name, g.Namespace = cmp.Or(g.Name, before.Name), cmp.Or(g.Namespace, before.Namespace)
	if before.From == model.JobOfCgroup || g.From == "" { // the surer way in which it is known
		g.From = before.From
	}
	if g.Kind == JobSlurm {
		g.User = cmp.Or(g.User, r.User)
	}
	if step := r.Job.Step; step != "" && !slices.Contains(g.Steps, step) {
		g.Steps = append(g.Steps, step)
	}
	if r.Start.Before(g.Start) {
		g.Start = r.Start
	}
	if last := r.Ended(); last.After(g.Last) {
		g.Last = last
	}
	g.Running = g.Running || r.End.Kind == Running
	if r.End.Failed() {
		g.Failed++
	}
	if joules, known := r.Energy(); known { // runs that share a device have its energy twice
		if g.Energy == nil {
			g.Energy = new(float64)
		}
		*g.Energy += joules
	}
	for i := range r.Devices {
		g.use(&r.Devices[i])
	}
	g.Runs = append(g.Runs, *r)
}

// use notes the most that a run held of a device, and its job while the run had it
// open.
func (g *JobGroup) use(d *Device) {
	i, found := slices.BinarySearchFunc(g.Devices, d.Index, func(x JobDevice, index int) int { return cmp.Compare(x.Index, index) })
	if !found {
		g.Devices = slices.Insert(g.Devices, i, JobDevice{Index: d.Index, BusID: d.BusID, Board: d.Board, Peaks: map[string]Peak{}})
	}
	peaks := g.Devices[i].Peaks
	raise := func(pool string, p Peak) {
		if old, known := peaks[pool]; !known || p.Bytes > old.Bytes {
			peaks[pool] = p
		}
	}
	for pool, p := range d.Pools {
		if p.PeakBound != "" {
			raise(pool, Peak{p.Peak, p.PeakBound, p.PeakAt})
		}
	}
	for pool, p := range d.Together {
		raise(pool, p)
	}
}

// findProcesses finds the job's processes, live and dead, in a snapshot.
func (g *JobGroup) findProcesses(s *model.Snapshot) {
	if s == nil {
		return
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running || !g.has(p) {
			continue
		}
		x := Holder{PID: p.PID, Name: p.Name.V, Step: p.SlurmStep, Devices: []int{}}
		for d := range p.Devices {
			if index := p.Devices[d].Device; index != model.NoDevice {
				x.Devices = append(x.Devices, index)
			}
		}
		g.Holding = append(g.Holding, x)
	}
	alive := func(p *Process) bool {
		return slices.ContainsFunc(g.Holding, func(h Holder) bool { return h.PID == p.PID })
	}
	for i := range s.StaleSlots {
		slot := &s.StaleSlots[i]
		if slices.ContainsFunc(g.Runs, func(r Run) bool { return r.Wrote(slot, alive) }) {
			g.Left = append(g.Left, LeftNow{NewLeft(slot), slot.Name, slot.Mapped})
		}
	}
}

// has reports whether a live process is of the job.
func (g *JobGroup) has(p *model.Process) bool {
	if g.Kind == JobPod {
		return p.Container.Pod == g.ID
	}
	return p.SlurmJob == g.ID && p.UID.Known() && p.UID.V == g.UID
}

// Wrote reports whether a dead process of the run wrote a slot: it has the number that
// the process had in its own pid namespace. alive reports whether a process lives.
func (r *Run) Wrote(slot *model.StaleSlot, alive func(*Process) bool) bool {
	if !slot.Updated.IsZero() && slot.Updated.Before(r.Start.Add(-time.Second)) {
		return false
	}
	return slices.ContainsFunc(r.Processes, func(p Process) bool {
		return p.PID == slot.PID && (slot.Name == "" || p.Name == "" || p.Name == slot.Name) && !alive(&p)
	})
}

// NewLeft is what a dead process left in a slot.
func NewLeft(slot *model.StaleSlot) Left {
	x := Left{PID: slot.PID, Region: slot.Region, Device: slot.Device, Bytes: map[string]uint64{}}
	bound := model.Exact
	for _, pool := range model.Pools() {
		if n, b, ok := slot.Bytes[pool].Best(); ok && n > 0 {
			x.Bytes[pool.String()], bound = n, max(bound, b)
		}
	}
	x.Bound = bound.String()
	return x
}
