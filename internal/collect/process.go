package collect

import (
	"context"
	"slices"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// addProcesses finds out who uses the devices.
func (c *Collector) addProcesses(ctx context.Context, s *model.Snapshot, sweep kmd.Sweep) {
	openers := make([]proc.Openers, len(sweep.Found))
	for i := range sweep.Found {
		f := &sweep.Found[i]
		openers[i] = proc.Openers{Device: f.Device.Index, BusID: f.Device.BusID, PIDs: f.Openers, Once: f.Once}
	}
	users, err := c.processes.Resolve(ctx, openers, sweep.Driver.V)
	c.engines = engineTimes{users.Read, users.Engines}
	s.Processes = slices.DeleteFunc(users.Processes, func(p model.Process) bool {
		if !c.telemetry.Own(p.PID) {
			return false
		}
		for i := range p.Devices { // which the module counts
			sweep.OpenFDs.V -= p.Devices[i].OpenFDs.V
		}
		return true
	})
	sweep.OpenFDs.V -= users.Locking
	countHidden(s, sweep)
	for i := range s.Devices {
		d := &s.Devices[i]
		if err != nil {
			d.Doubts = append(d.Doubts, model.Doubt{Kind: model.UsersUnknown, Detail: err.Error()})
		}
		d.Doubts = append(d.Doubts, users.Doubts[d.Index]...)
	}
}

// withoutOwn is a list of openers without those that read chips for us.
func (c *Collector) withoutOwn(r model.Reading[[]int]) model.Reading[[]int] {
	if slices.ContainsFunc(r.V, c.telemetry.Own) {
		r.V = slices.DeleteFunc(slices.Clone(r.V), c.telemetry.Own)
	}
	return r
}
