package assess

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
)

// A condition that comes and goes with a value must be seen twice before it
// is one, and be missing twice before it is over. Samples that are nearer to
// each other than apart are one.
const (
	twice = 2
	apart = 400 * time.Millisecond
)

// Judge assesses the snapshots of one host, one after the other. The zero
// Judge has seen none, and takes the default thresholds. It is not safe for
// concurrent use.
type Judge struct {
	limits  Thresholds
	courses map[key]*course
	devices map[string]bool // that were in the last snapshot, by bus id
	last    time.Time       // of the last snapshot that counts for damping
	rhythms rhythms         // of processes, for those that may be stuck
}

// key is what tells conditions of a host apart over time.
type key struct {
	bus     string
	process model.ProcessID
	kind    model.ConditionKind
}

// course is what is known of a condition over time.
type course struct {
	since time.Time
	older bool // it held already when its device was first seen
	seen  int  // samples in a row with it, up to twice
	gone  int  // samples in a row without it
	holds bool // it was seen often enough
	last  model.Condition
}

// NewJudge returns a judge with thresholds of its own.
func NewJudge(t Thresholds) *Judge { return &Judge{limits: t} }

// SetThresholds changes the thresholds. What is known over time stays.
func (j *Judge) SetThresholds(t Thresholds) { j.limits = t }

// Assess puts into a snapshot which conditions hold. It is called once for
// each, in order, before the snapshot is published.
func (j *Judge) Assess(s *model.Snapshot) {
	if j.courses == nil {
		j.courses = map[key]*course{}
	}
	if j.rhythms == nil {
		j.rhythms = rhythms{}
	}
	if j.limits == (Thresholds{}) {
		j.limits = Default()
	}
	counts := s.Time.Sub(j.last) >= apart || s.Time.Before(j.last)
	if counts {
		j.last = s.Time
	}
	bus := make(map[int]string, len(s.Devices))
	for i := range s.Devices {
		bus[s.Devices[i].Index] = s.Devices[i].BusID
	}
	found := find(s, j.limits, func(d *model.Device, k model.ConditionKind) bool {
		c := j.courses[key{bus: d.BusID, kind: k}]
		return c != nil && c.holds
	})
	found = append(found, j.rhythms.stuck(s)...)
	seen := make(map[key]bool, len(found))
	for _, c := range found {
		k := key{bus[c.Device], c.Process, c.Kind}
		seen[k] = true
		j.see(k, c, s.Time, counts)
	}
	j.miss(s, seen, bus, counts)
	j.publish(s)
	j.devices = map[string]bool{}
	for _, b := range bus {
		j.devices[b] = true
	}
}

// see takes note of a condition that a snapshot has.
func (j *Judge) see(k key, c model.Condition, now time.Time, counts bool) {
	x := j.courses[k]
	if x == nil {
		first := k.bus != "" && !j.devices[k.bus] || k.bus == "" && j.devices == nil
		x = &course{since: now, older: first, holds: first || !c.Kind.Row().Damped}
		j.courses[k] = x
		counts = true
	}
	if counts {
		x.seen = min(x.seen+1, twice)
	}
	x.gone = 0
	x.holds = x.holds || x.seen >= twice
	if !c.Since.IsZero() && (x.older || c.Since.Before(x.since)) { // the driver knows better
		x.since, x.older = c.Since, false
	}
	x.last = c
}

// miss takes note of conditions that a snapshot does not have any more.
func (j *Judge) miss(s *model.Snapshot, seen map[key]bool, bus map[int]string, counts bool) {
	working := map[string]bool{}
	for i := range s.Devices {
		working[s.Devices[i].BusID] = s.Devices[i].State == model.StateOK
	}
	for k, x := range j.courses {
		if seen[k] {
			continue
		}
		x.seen = 0
		if counts {
			x.gone++
		}
		over := !x.holds || !k.kind.Row().Damped || x.gone >= twice || !working[k.bus]
		if over {
			delete(j.courses, k)
			continue
		}
		refresh(&x.last, s, bus, k.bus)
	}
}

// refresh gives a condition that is about to be over the values of now.
func refresh(c *model.Condition, s *model.Snapshot, bus map[int]string, of string) {
	for index, b := range bus {
		if b == of {
			c.Device = index
		}
	}
	d := s.Device(c.Device)
	if d == nil {
		return
	}
	c.Facts = slices.Clone(c.Facts)
	for i := range c.Facts {
		f := &c.Facts[i]
		if v, ok := valueOf(d, f.Kind).Get(); ok {
			f.Value = v
		}
	}
}

// valueOf is the value of a device that a fact is about.
func valueOf(d *model.Device, k model.FactKind) model.Reading[float64] {
	whole := func(r model.Reading[int]) model.Reading[float64] {
		return model.Map(r, func(n int) float64 { return float64(n) })
	}
	switch k {
	case model.FactTemperature:
		return d.Temperature
	case model.FactClock:
		return d.AICLK
	case model.FactPower:
		return d.Power
	case model.FactCurrent:
		return d.Current
	case model.FactLinkGen:
		return whole(d.PCIe.Gen)
	case model.FactLinkWidth:
		return whole(d.PCIe.Width)
	}
	return model.Reading[float64]{}
}

// publish puts what holds into the snapshot.
func (j *Judge) publish(s *model.Snapshot) {
	s.Assessed, s.Conditions = true, nil
	for _, x := range j.courses {
		if !x.holds {
			continue
		}
		c := x.last
		c.Since, c.Older = x.since, x.older
		if x.older && !x.since.Before(s.Time) { // nothing is known about how long
			c.Since, c.Older = time.Time{}, false
		}
		s.Conditions = append(s.Conditions, c)
		markStuck(s, &c)
	}
	s.Conditions = withoutImplied(s.Conditions)
	sorted.By(s.Conditions, func(a, b *model.Condition) int { return compare(a, b) })
}

// markStuck says of the process, too, what a condition says of its device.
func markStuck(s *model.Snapshot, c *model.Condition) {
	if c.Kind != model.ConditionStuck {
		return
	}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.ID() == c.Process && p.Condition == "" {
			p.Condition = model.Stuck
		}
	}
}

// Course is what a judge knows of a condition and its successor could not
// know: since when it holds.
type Course struct {
	BusID   string              `json:"bus_id,omitempty"`
	Process model.ProcessID     `json:"process,omitzero"`
	Kind    model.ConditionKind `json:"kind"`
	Since   time.Time           `json:"since"`
	Older   bool                `json:"older,omitempty"`
}

// Courses is what a successor should know.
func (j *Judge) Courses() []Course {
	var list []Course
	for k, x := range j.courses {
		if x.holds {
			list = append(list, Course{k.bus, k.process, k.kind, x.since, x.older})
		}
	}
	return list
}

// Restore takes over what another judge knew. It is called before the first
// Assess. What does not hold any more is gone with the first snapshot.
func (j *Judge) Restore(list []Course) {
	j.courses = map[key]*course{}
	j.devices = map[string]bool{}
	for _, c := range list {
		j.courses[key{c.BusID, c.Process, c.Kind}] = &course{since: c.Since, older: c.Older, seen: twice, holds: true, gone: twice}
		j.devices[c.BusID] = true
	}
}
