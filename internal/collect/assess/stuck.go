package assess

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// A job may be stuck when it waits for its chips and nothing completes for
// longer than its own longest program explains. That is a suspicion: a program
// that runs for the first time may take longer than all before it. So the power
// of the chips has to have fallen from what this job draws at work, or a long
// time must have passed.
const (
	// stuckPrograms times the longest program, and stuckMargin, must have passed.
	stuckPrograms = 2
	stuckMargin   = 8 * time.Second
	// stuckBlind must have passed where power does not tell work from waiting.
	stuckBlind = 10 * time.Minute
	// A host without a processor to spare delivers records late: everything
	// takes so many times as long there.
	busyHost       = 95 // percent of all processors
	busyHostFactor = 3
	// A thread that waits for a chip polls it: a process that hardly runs does
	// not get to.
	starved = 5 // percent of a processor
	// atRest is how far power must have fallen, of what the job draws at work.
	atRest = 0.75
	// settledPower is how many samples are averaged.
	settledPower = 10
)

// rhythm is how a process has worked so far.
type rhythm struct {
	// from is when the last thing happened that is not waiting: silence counts
	// from then on.
	from time.Time
	work map[int]*level // W of each device while its programs run
	seen bool           // in this snapshot
	// suspected is the from at which it was suspected. As long as nothing happens,
	// a busy moment of the host ends no suspicion: an alert would come and go.
	suspected time.Time
}

// level is an average over samples.
type level struct {
	value float64
	n     int
}

func (l *level) add(v float64) {
	l.n = min(l.n+1, settledPower)
	l.value += (v - l.value) / float64(l.n)
}

// rhythms are those of the processes of a host.
type rhythms map[model.ProcessID]*rhythm

// stuck finds processes that wait for chips on which nothing completes.
func (r rhythms) stuck(s *model.Snapshot) (found []model.Condition) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if !p.Work.Watched || len(p.Work.Chips) == 0 {
			continue
		}
		x := r[p.ID()]
		if x == nil {
			x = &rhythm{work: map[int]*level{}}
			r[p.ID()] = x
		}
		x.seen = true
		x.learn(s, p)
		if c, is := x.judge(s, p); is {
			found = append(found, c)
		}
	}
	for id, x := range r {
		if !x.seen {
			delete(r, id)
		}
		x.seen = false
	}
	return found
}

// learn takes note of what a snapshot says of a process.
func (x *rhythm) learn(s *model.Snapshot, p *model.Process) {
	later := func(t time.Time) {
		if t.After(x.from) {
			x.from = t
		}
	}
	later(p.Work.Host.WaitingSince)
	if p.Work.Host.WaitingSince.IsZero() || p.Condition == model.Stopped {
		later(s.Time) // it does not wait, or cannot see that the wait is over
	}
	for i := range p.Work.Chips {
		c := &p.Work.Chips[i]
		later(c.LastRecord)
		d := s.Device(c.Device)
		if d == nil || !d.Power.Known() {
			continue
		}
		if busy, ok := c.Work.Busy.Get(); ok && busy > 0.2 {
			if x.work[d.Index] == nil {
				x.work[d.Index] = &level{}
			}
			x.work[d.Index].add(d.Power.V)
		}
	}
}

// judge says whether a process may be stuck.
func (x *rhythm) judge(s *model.Snapshot, p *model.Process) (model.Condition, bool) {
	h := &p.Work.Host
	if h.WaitingSince.IsZero() || p.Condition == model.Stopped || p.State != model.Running {
		return model.Condition{}, false
	}
	standing := !x.suspected.IsZero() && x.suspected.Equal(x.from)
	if cpu, ok := p.CPU.Get(); ok && cpu < starved && !standing {
		return model.Condition{}, false
	}
	longest, device := longestProgram(p), model.NoDevice
	for i := range p.Work.Chips {
		c := &p.Work.Chips[i]
		if d := s.Device(c.Device); d != nil && d.State != model.StateOK {
			return model.Condition{}, false // that is the trouble, and has a condition of its own
		}
		if device == model.NoDevice || c.Device < device {
			device = c.Device
		}
	}
	if longest > maxProgram.Seconds() {
		return model.Condition{}, false
	}
	need := silenceNeeded(s, longest)
	resting, works := x.power(s, p)
	if works {
		return model.Condition{}, false
	}
	if resting == 0 {
		need = max(need, stuckBlind)
	}
	silent := s.Time.Sub(x.from)
	if silent < need && !standing {
		return model.Condition{}, false
	}
	x.suspected = x.from
	cause := model.WaitsInFinish
	if h.WaitingFor == model.WaitsForEvent {
		cause = model.WaitsInEvent
	}
	c := model.Condition{
		Kind: model.ConditionStuck, Level: LevelOf(model.ConditionStuck), Device: device, Process: p.ID(),
		Since: x.from, Cause: cause, Concluded: true, Remedy: model.RemedyOperations,
		Facts: []model.Fact{
			{Kind: model.FactSilence, Value: silent.Seconds(), Limit: longest},
			{Kind: model.FactWaited, Value: s.Time.Sub(h.WaitingSince).Seconds()},
			{Kind: model.FactNeeded, Value: need.Seconds()},
			{Kind: model.FactResting, Value: float64(resting), Limit: float64(len(p.Work.Chips))},
		},
	}
	if now, atWork, known := x.powerOf(s.Device(device)); known {
		c.Facts = append(c.Facts, model.Fact{Kind: model.FactWorkPower, Value: now, Limit: atWork})
	}
	return c, true
}

// maxProgram is the longest program that can be: more is nonsense, of which
// nothing follows.
const maxProgram = 24 * time.Hour

// power says how many chips of a process draw less than while its programs run,
// and whether one draws as much, which is then at work. The others' power tells
// nothing.
func (x *rhythm) power(s *model.Snapshot, p *model.Process) (resting int, works bool) {
	for i := range p.Work.Chips {
		now, atWork, known := x.powerOf(s.Device(p.Work.Chips[i].Device))
		switch {
		case !known:
		case now > atRest*atWork:
			return 0, true
		default:
			resting++
		}
	}
	return resting, false
}

// powerOf is what a device draws, and what it draws while the programs of the
// process run.
func (x *rhythm) powerOf(d *model.Device) (now, atWork float64, known bool) {
	if d == nil || x.work[d.Index] == nil || x.work[d.Index].n < 2 || !d.Power.Known() {
		return 0, 0, false
	}
	return d.Power.V, x.work[d.Index].value, true
}
