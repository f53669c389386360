package jobs

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

// Run is a run of a job.
type Run struct {
	ID      uint64      `json:"id"`
	Step    string      `json:"step,omitempty"`
	Command string      `json:"command,omitempty" see:"past"`
	Start   time.Time   `json:"start"`
	Last    time.Time   `json:"last"`
	End     runs.Ending `json:"end"`
	Failed  bool        `json:"failed"` // it is known to have ended badly
}

// Find lists the jobs of runs, the newest last. book are those that were accounted
// for as a whole: what the runs of a job held together is known from there, and of
// runs alone only the most of each. A job is listed if one of its runs is asked for;
// q.Names are ids or names of jobs.
func Find(book []Job, list []runs.Run, q *runs.Query) []Job {
	all := join(book, list)
	all = slices.DeleteFunc(all, disbelieved(all))
	var out []Job
	for _, j := range all {
		if j.named(q.Names) && j.matches(q) {
			out = append(out, *j)
		}
	}
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[len(out)-q.Limit:]
	}
	return out
}

// join puts the runs into the jobs that they belong to, which are made where they
// are not there. The oldest is first.
func join(book []Job, list []runs.Run) (all []*Job) {
	known := map[key]*Job{}
	for i := range book {
		j := book[i].clone()
		known[j.key()] = &j
	}
	for i := range list {
		r := &list[i]
		if r.Job == nil {
			continue
		}
		k := key{Kind(r.Job.Kind), r.Job.ID, -1}
		if k.kind == Slurm { // a pod's processes may be of any user
			k.uid = r.UID
		}
		if known[k] == nil {
			known[k] = &Job{Kind: k.kind, ID: k.id, UID: k.uid, Start: r.Start, Processes: []Process{}, Devices: []Device{}}
		}
		known[k].addRun(r)
	}
	for _, j := range known {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Job) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID), cmp.Compare(a.UID, b.UID))
	})
	return all
}

// addRun adds a run to its job.
func (j *Job) addRun(r *runs.Run) {
	j.runs = append(j.runs, *r)
	j.Runs = append(j.Runs, Run{r.ID, r.Job.Step, r.Command, r.Start, r.Last, r.End, r.End.Failed()})
	j.Name, j.Namespace = cmp.Or(r.Job.Name, j.Name), cmp.Or(r.Job.Namespace, j.Namespace)
	j.From = better(j.From, r.Job.From)
	if j.Kind == Slurm {
		j.User = cmp.Or(j.User, r.User)
	}
	if s := r.Job.Step; s != "" && len(j.Steps) < maxSteps && !slices.Contains(j.Steps, s) {
		j.Steps = append(j.Steps, s)
	}
	if r.Start.Before(j.Start) {
		j.Start = r.Start
	}
	if last := r.Ended(); last.After(j.Last) {
		j.Last = last
	}
	j.Running = j.Running || r.End.Kind == runs.Running
	if r.End.Failed() {
		j.Failed++
	}
	j.spend(r)
	for _, p := range r.Processes {
		if len(j.Processes) < maxProcesses && !slices.ContainsFunc(j.Processes, func(x Process) bool { return x.PID == p.PID && x.StartTicks == p.StartTicks }) {
			j.Processes = append(j.Processes, Process{p.PID, p.StartTicks, p.Name})
		}
	}
	for i := range r.Devices {
		j.use(&r.Devices[i])
	}
}

// better is the surer way in which a job is known.
func better(a, b model.JobSource) model.JobSource {
	if a == model.JobOfCgroup || b == "" {
		return a
	}
	return b
}

// spend adds the energy of a run. Runs that share a device have its energy twice.
func (j *Job) spend(r *runs.Run) {
	joules, known := r.Energy()
	if !known {
		return
	}
	if j.Energy == nil {
		j.Energy = &Energy{Bound: model.Unsure.String()}
	}
	j.Energy.Joules += joules
}

// use notes the most that a run held of a device.
func (j *Job) use(d *runs.Device) {
	i, found := slices.BinarySearchFunc(j.Devices, d.Index, func(x Device, index int) int { return cmp.Compare(x.Index, index) })
	if !found {
		j.Devices = slices.Insert(j.Devices, i, Device{Index: d.Index, BusID: d.BusID, Board: d.Board, Peaks: map[string]Peak{}})
	}
	for name, p := range d.Pools {
		if old, known := j.Devices[i].Peaks[name]; p.PeakBound != "" && (!known || p.Peak > old.Bytes) {
			j.Devices[i].Peaks[name] = Peak{p.Peak, p.PeakBound, p.PeakAt}
		}
	}
}

func (j *Job) named(names []string) bool {
	return len(names) == 0 || slices.Contains(names, j.ID) || j.Name != "" && slices.Contains(names, j.Name)
}

// matches reports whether a run of the job is asked for, or, where none is kept, the
// job by itself.
func (j *Job) matches(q *runs.Query) bool {
	if q.Visible != nil && !q.Visible(j.UID) {
		return false
	}
	for i := range j.runs {
		of := *q
		of.Visible = nil // the job's user counts
		if of.Matches(&j.runs[i]) {
			return true
		}
	}
	alone := len(j.runs) == 0 && q.Device == "" && q.Text == "" && q.Command == "" && !q.Leaked && !q.Failed
	return alone && (q.UID == nil || j.UID == *q.UID) && (q.Running == nil || j.Running == *q.Running) &&
		(j.Running || !j.Last.Before(q.Since)) && (q.Until.IsZero() || !j.Start.After(q.Until))
}
