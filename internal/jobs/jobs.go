// Package jobs keeps what the jobs of a host's schedulers took of its boards: for
// each Slurm job and each Kubernetes pod who ran it, when, and the most memory that
// its processes held on each device together.
//
// A job is the runs (package runs) of its processes, and what they held together: the
// Book follows the snapshots, and keeps that on disk. Snapshots are taken every second, so a
// peak between two of them is not seen: peaks are at least what they say.
package jobs

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/sorted"
)

// Kind is whose word "job" is.
type Kind string

// The kinds.
const (
	Slurm Kind = "slurm"
	Pod   Kind = "pod"
)

// Job is what is known of one.
type Job struct {
	Kind      Kind            `json:"kind"`
	ID        string          `json:"id"`                         // of a pod: its uid
	Name      string          `json:"name,omitempty" see:"owner"` // of a pod: for all who see the job
	Namespace string          `json:"namespace,omitempty"`
	UID       int             `json:"uid"` // -1: not known
	User      string          `json:"user,omitempty"`
	From      model.JobSource `json:"from,omitempty"`  // who says that its processes are of the job
	Steps     []string        `json:"steps,omitempty"` // of Slurm
	Start     time.Time       `json:"start"`           // when it was first seen at a device
	Last      time.Time       `json:"last"`            // and last
	Running   bool            `json:"running"`
	Processes []Process       `json:"processes"`
	Dropped   int             `json:"processes_dropped,omitempty"` // more than are kept
	Devices   []Device        `json:"devices"`
	// Runs are its programs that used devices, the oldest first, as far as they are
	// kept; Failed is how many of them are known to have ended badly.
	Runs   []Run   `json:"runs,omitempty"`
	Failed int     `json:"failed,omitempty"`
	Energy *Energy `json:"energy,omitempty"` // of its devices while its runs had them open; absent: not known

	runs []runs.Run
}

// Energy is what devices took.
type Energy struct {
	Joules float64 `json:"joules"`
	Bound  string  `json:"bound"`
}

// Process is one that the job had at a device.
type Process struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Name       string `json:"name"`
}

// Device is what the job held of one, at most, over all its processes.
type Device struct {
	Index int             `json:"index"`
	BusID string          `json:"bus_id,omitempty"`
	Board string          `json:"board,omitempty"`
	Peaks map[string]Peak `json:"peaks"` // by pool; without what no source accounted for
}

// Peak is the most that was seen.
type Peak struct {
	Bytes uint64    `json:"bytes"`
	Bound string    `json:"bound"` // at_least, or unsure
	At    time.Time `json:"at"`
}

// Peak is the most that was seen of a pool, which is at least that much: it is
// sampled once a second. Missing where no source accounts for it.
func (d *Device) Peak(pool string) model.Bytes {
	p, ok := d.Peaks[pool]
	if !ok {
		return model.NoBytes(model.Absent)
	}
	return model.BoundBytes(p.Bytes, max(model.ParseBound(p.Bound), model.AtLeast))
}

const (
	maxProcesses  = 64   // kept by name for each job
	maxSteps      = 64   // likewise
	maxLivePerUID = 256  // jobs of a user at one time: the environment is the user's
	maxEnded      = 4000 // kept
	maxEndedOfUID = 1000 // of one user
)

// key tells jobs apart. What a user says of itself makes no record of another's.
type key struct {
	kind Kind
	id   string
	uid  int
}

func (j *Job) key() key { return key{j.Kind, j.ID, j.UID} }

// Book is the account. It is safe for several goroutines.
type Book struct {
	mu    sync.Mutex
	live  map[key]*Job
	ended []*Job // oldest first
	file  *file  // nil: in memory only
}

// New returns a book that is not kept on disk.
func New() *Book { return &Book{live: map[key]*Job{}} }

// Observe takes a snapshot in.
func (b *Book) Observe(s *model.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sums := map[key]map[int]*[model.NumPools]model.Sum{}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running || len(p.Devices) == 0 {
			continue
		}
		j := b.of(p, s.Time)
		if j == nil {
			continue
		}
		j.meet(p)
		k := j.key()
		if sums[k] == nil {
			sums[k] = map[int]*[model.NumPools]model.Sum{}
		}
		for d := range p.Devices {
			u := &p.Devices[d]
			if sums[k][u.Device] == nil {
				sums[k][u.Device] = new([model.NumPools]model.Sum)
			}
			for _, pool := range model.Pools() {
				sums[k][u.Device][pool].Add(u.Memory[pool])
			}
		}
	}
	for k, j := range b.live {
		if sums[k] == nil {
			b.end(k, j)
			continue
		}
		j.Running, j.Last = true, s.Time
		for device, pools := range sums[k] {
			j.hold(s, device, pools)
		}
	}
	b.file.tick(b, s.Time)
}

// of finds or makes the job of a process; nil: it has none, or its user has too
// many.
func (b *Book) of(p *model.Process, now time.Time) *Job {
	j := &Job{UID: -1, Start: now, Last: now, Running: true}
	switch {
	case p.SlurmJob != "":
		j.Kind, j.ID, j.From = Slurm, p.SlurmJob, p.SlurmFrom
	case p.Container.Pod != "":
		j.Kind, j.ID = Pod, p.Container.Pod
	default:
		return nil
	}
	if j.Kind == Slurm && p.UID.Known() { // a pod's processes may be of any user
		j.UID, j.User = p.UID.V, p.User.V
	}
	if known := b.live[j.key()]; known != nil {
		return known
	}
	if again := b.revive(j.key()); again != nil { // a step after another
		return again
	}
	of := 0
	for k := range b.live {
		if k.uid == j.UID {
			of++
		}
	}
	if of >= maxLivePerUID {
		return nil
	}
	b.live[j.key()] = j
	return j
}

// revive takes a job back that seemed to have ended.
func (b *Book) revive(k key) *Job {
	for i := len(b.ended) - 1; i >= 0; i-- {
		if j := b.ended[i]; j.key() == k {
			b.ended = slices.Delete(b.ended, i, i+1)
			b.live[k] = j
			return j
		}
	}
	return nil
}

func (b *Book) end(k key, j *Job) {
	j.Running = false
	delete(b.live, k)
	b.ended = append(b.ended, j)
	b.trim()
	b.file.dirty()
}

// trim forgets the oldest jobs: of a user who has too many, then of all.
func (b *Book) trim() {
	of := map[int]int{}
	for _, j := range b.ended {
		of[j.UID]++
	}
	over := len(b.ended) - maxEnded
	b.ended = slices.DeleteFunc(b.ended, func(j *Job) bool {
		if of[j.UID] > maxEndedOfUID || over > 0 {
			of[j.UID]--
			over--
			return true
		}
		return false
	})
}

// meet notes a process, its step, and the names of its pod.
func (j *Job) meet(p *model.Process) {
	if p.Container.PodName != "" {
		j.Name, j.Namespace = p.Container.PodName, p.Container.Namespace
	}
	if p.SlurmStep != "" && len(j.Steps) < maxSteps && !slices.Contains(j.Steps, p.SlurmStep) {
		j.Steps = append(j.Steps, p.SlurmStep)
	}
	for i := range j.Processes {
		if j.Processes[i].PID == p.PID && j.Processes[i].StartTicks == p.StartTicks {
			j.Processes[i].Name = p.Name.V
			return
		}
	}
	if len(j.Processes) >= maxProcesses {
		j.Processes = slices.Delete(j.Processes, 0, 1)
		j.Dropped++
	}
	j.Processes = append(j.Processes, Process{p.PID, p.StartTicks, p.Name.V})
}

// hold notes what the job holds of a device now.
func (j *Job) hold(s *model.Snapshot, index int, pools *[model.NumPools]model.Sum) {
	i := slices.IndexFunc(j.Devices, func(d Device) bool { return d.Index == index })
	if i < 0 {
		j.Devices = append(j.Devices, Device{Index: index, Peaks: map[string]Peak{}})
		sorted.By(j.Devices, func(a, b *Device) int { return cmp.Compare(a.Index, b.Index) })
		i = slices.IndexFunc(j.Devices, func(d Device) bool { return d.Index == index })
	}
	d := &j.Devices[i]
	if dev := s.Device(index); dev != nil {
		d.BusID, d.Board = dev.BusID, dev.Board.V
	}
	for _, pool := range model.Pools() {
		n, bound, known := pools[pool].Bytes().Best()
		if !known {
			continue
		}
		if bound == model.Exact { // between two snapshots it may have been more
			bound = model.AtLeast
		}
		if old, ok := d.Peaks[pool.String()]; !ok || n > old.Bytes {
			d.Peaks[pool.String()] = Peak{n, bound.String(), s.Time}
		}
	}
}

// Query is which jobs are asked for. Zero values ask for all.
type Query struct {
	IDs   []string
	UID   *int
	Since time.Time // ended after, or running
	Limit int       // the newest so many
}

// Find lists jobs, the newest last. They are the caller's own copies.
func (b *Book) Find(q Query) (list []Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.ended)
	for _, j := range b.live {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Job) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID), cmp.Compare(a.UID, b.UID))
	})
	all = slices.DeleteFunc(all, disbelieved(all))
	for _, j := range all {
		if len(q.IDs) > 0 && !slices.Contains(q.IDs, j.ID) && (j.Name == "" || !slices.Contains(q.IDs, j.Name)) ||
			q.UID != nil && j.UID != *q.UID || !j.Running && j.Last.Before(q.Since) {
			continue
		}
		list = append(list, j.clone())
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[len(list)-q.Limit:]
	}
	return list
}

// disbelieved finds jobs that only the environment of a user's processes names,
// where control groups, which only Slurm makes, say whose the job is.
func disbelieved(all []*Job) func(*Job) bool {
	owner := map[string]int{}
	for _, j := range all {
		if j.Kind == Slurm && j.From == model.JobOfCgroup {
			owner[j.ID] = j.UID
		}
	}
	return func(j *Job) bool {
		uid, ok := owner[j.ID]
		return ok && j.Kind == Slurm && j.From == model.JobOfEnviron && j.UID != uid
	}
}

func (j *Job) clone() Job {
	c := *j
	c.Steps, c.Processes, c.Devices = slices.Clone(j.Steps), slices.Clone(j.Processes), slices.Clone(j.Devices)
	for i := range c.Devices {
		peaks := map[string]Peak{}
		for k, v := range j.Devices[i].Peaks {
			peaks[k] = v
		}
		c.Devices[i].Peaks = peaks
	}
	return c
}
