package jobs

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the JSON of a list of jobs.
const Schema = "ttmon.jobs/1"

// Answer is that of /v1/jobs.
type Answer struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"`
	Jobs   []Account `json:"jobs" see:"proc"`
}

// Account is a job, and what there is of it now.
type Account struct {
	Job
	Holding []Holder    `json:"holding"` // its processes that have devices open now
	Left    []StaleSlot `json:"left"`    // what its dead processes left in tt-metal's accounting
}

// Holder is a live process of a job.
type Holder struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Step    string `json:"step,omitempty"`
	Devices []int  `json:"devices"` // of this host; none: its chips are behind none of them
}

// StaleSlot is what a dead process of a job left.
type StaleSlot struct {
	PID    int               `json:"pid"`
	Name   string            `json:"name"`
	Region string            `json:"region"`
	Device *int              `json:"device"` // null: behind none of this host's devices
	Bytes  map[string]uint64 `json:"bytes"`  // by pool
	InUse  bool              `json:"in_use"` // a live process still has the region
}

// Now is a job with what there is of it in a snapshot.
func (j Job) Now(s *model.Snapshot) Account {
	a := Account{Job: j, Holding: []Holder{}, Left: []StaleSlot{}}
	if s != nil {
		a.findProcesses(s)
	}
	return a
}

// findProcesses finds the job's processes, live and dead, in a snapshot.
func (a *Account) findProcesses(s *model.Snapshot) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running || !a.has(p) {
			continue
		}
		x := Holder{PID: p.PID, Name: p.Name.V, Step: p.SlurmStep, Devices: []int{}}
		for d := range p.Devices {
			if index := p.Devices[d].Device; index != model.NoDevice {
				x.Devices = append(x.Devices, index)
			}
		}
		a.Holding = append(a.Holding, x)
	}
	for i := range s.StaleSlots {
		g := &s.StaleSlots[i]
		// A stale slot has the number that the process had in its own pid namespace.
		mine := slices.ContainsFunc(a.Processes, func(p Process) bool { return p.PID == g.PID && (g.Name == "" || p.Name == "" || p.Name == g.Name) })
		if !mine || slices.ContainsFunc(a.Holding, func(p Holder) bool { return p.PID == g.PID }) {
			continue
		}
		x := StaleSlot{PID: g.PID, Name: g.Name, Region: g.Region, Bytes: map[string]uint64{}, InUse: g.Mapped}
		if g.Device != model.NoDevice {
			x.Device = &g.Device
		}
		for _, pool := range model.Pools() {
			if n, _, known := g.Bytes[pool].Best(); known && n > 0 {
				x.Bytes[pool.String()] = n
			}
		}
		a.Left = append(a.Left, x)
	}
}

// has reports whether a live process is of the job.
func (a *Account) has(p *model.Process) bool {
	if a.Kind == Pod {
		return p.Container.Pod == a.ID
	}
	return p.SlurmJob == a.ID && p.UID.Known() && p.UID.V == a.UID
}
