package collect

import (
	"context"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// addProcesses finds out who uses the devices.
func (c *Collector) addProcesses(ctx context.Context, s *model.Snapshot, sweep kmd.Sweep) {
	openers := make([]proc.Openers, len(sweep.Found))
	for i := range sweep.Found {
		f := &sweep.Found[i]
		openers[i] = proc.Openers{Device: f.Device.Index, PIDs: f.Openers}
	}
	users, err := c.processes.Resolve(ctx, openers, sweep.Driver.V)
	s.Processes = users.Processes
	countHidden(s, sweep)
	for i := range s.Devices {
		d := &s.Devices[i]
		if err != nil {
			d.Notes = append(d.Notes, "its users are not known: "+err.Error())
		}
		if note := users.Notes[d.Index]; note != "" {
			d.Notes = append(d.Notes, note)
		}
	}
	for i := range sweep.Found {
		addDriverMemory(s, &sweep.Found[i])
	}
}

// addDriverMemory takes over what the driver itself says of memory. No
// release says anything today.
func addDriverMemory(s *model.Snapshot, f *kmd.Found) {
	d := s.Device(f.Device.Index)
	if f.Memory.DRAMUsed.Known() {
		d.Memory.Tracking = model.TrackOK
		d.Memory.Pools[model.DRAM].Used = f.Memory.DRAMUsed
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		bytes, ok := f.Memory.ByPID[p.PID]
		if !ok || p.State != model.Running {
			continue
		}
		for j := range p.Devices {
			if u := &p.Devices[j]; u.Device == d.Index && u.Source == "" {
				u.Memory[model.DRAM] = model.Value(bytes)
				u.Source, u.Tracking = "driver", model.TrackOK
			}
		}
	}
}
