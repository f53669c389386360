package shm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// use adds a region's figure for one process.
func (a *merging) use(r *Region, u Use, device int) {
	a.tracked[identity{u.PID, u.StartTicks}] = true
	d := a.deviceUse(a.process(u.PID, u.StartTicks), device)
	if d.Source != "" && d.Source != source {
		return // a better source has spoken
	}
	d.Source = source
	tracking := model.TrackOK
	for _, pool := range regionPools {
		if !u.Bytes[pool].Known() {
			tracking = model.TrackPartial
		}
		d.Memory[pool] = add(d.Memory[pool], u.Bytes[pool])
	}
	d.Tracking = join(d.Tracking, tracking)
	addNote(&d.Note, u.Note)
	for i := range d.Chips {
		if c := &d.Chips[i]; c.ChipID == r.ID {
			for _, pool := range regionPools {
				c.Memory[pool] = add(c.Memory[pool], u.Bytes[pool])
			}
			return
		}
	}
	d.Chips = append(d.Chips, model.ChipUse{ChipID: r.ID, Memory: u.Bytes})
}

const source = "shm"

// process finds a process in the snapshot, or adds it.
func (a *merging) process(pid int, start uint64) *model.Process {
	if p := findProcess(a.snap, pid, start); p != nil {
		return p
	}
	p := model.Process{PID: pid, StartTicks: start, State: model.Running}
	for _, known := range a.sweep.Processes {
		if known.PID == pid && known.StartTicks == start {
			p.StartTime, p.Name = known.StartTime, model.Value(known.Name)
			if known.UID >= 0 {
				p.UID = model.Value(known.UID)
			}
		}
	}
	a.snap.Processes = append(a.snap.Processes, p)
	return &a.snap.Processes[len(a.snap.Processes)-1]
}

func findProcess(snap *model.Snapshot, pid int, start uint64) *model.Process {
	for i := range snap.Processes {
		if p := &snap.Processes[i]; p.PID == pid && p.StartTicks == start {
			return p
		}
	}
	return nil
}

func (a *merging) deviceUse(p *model.Process, device int) *model.DeviceUse {
	for i := range p.Devices {
		if p.Devices[i].Device == device {
			return &p.Devices[i]
		}
	}
	p.Devices = append(p.Devices, model.DeviceUse{Device: device})
	return &p.Devices[len(p.Devices)-1]
}

// processes adds releases and notes, and says of device users that account
// nowhere why they do not.
func (a *merging) processes() {
	for _, known := range a.sweep.Processes {
		p := findProcess(a.snap, known.PID, known.StartTicks)
		if p == nil {
			continue
		}
		p.Release = known.Release
		p.Notes = append(p.Notes, known.Notes...)
		for i := range p.Devices {
			u := &p.Devices[i]
			if u.Source != "" || u.Device == model.NoDevice {
				continue
			}
			u.Tracking, u.Note = known.Tracking, ofIt(known)
			if known.Tracking == model.TrackDenied {
				for _, pool := range regionPools {
					u.Memory[pool] = model.Missing[uint64](model.Denied, "")
				}
			}
			if known.Tracking == model.TrackOK {
				u.Tracking, u.Note = model.TrackAbsent, "it has the device open and accounts for no chip of it"
				continue
			}
			a.untracked(known, u.Device)
		}
	}
}

// untracked lets a device know that somebody on it is not in its figures. A
// program that is not tt-metal's takes nothing from tt-metal's allocator: it
// makes nothing incomplete.
func (a *merging) untracked(p *Process, device int) {
	d := a.snap.Device(device)
	if d == nil || p.foreign {
		return
	}
	status := model.Absent
	if p.Tracking == model.TrackDenied {
		status = model.Denied
	}
	note := fmt.Sprintf("process %d is not in the figures: %s", p.PID, ofIt(p))
	for i := range d.Chips {
		m := &d.Chips[i].Memory
		m.Tracking = join(m.Tracking, p.Tracking)
		addNote(&m.Note, note)
		for _, pool := range regionPools {
			used := &m.Pools[pool].Used
			*used = add(*used, model.Missing[uint64](status, note))
		}
	}
}

// ofIt is why a process is not tracked, said where it is clear who is meant.
func ofIt(p *Process) string {
	if rest, ok := strings.CutPrefix(p.Reason, fmt.Sprintf("process %d ", p.PID)); ok {
		return "it " + rest
	}
	return p.Reason
}

// covered tells whether all that have a device open are known to account for
// what they hold. A chip of it without a region then holds nothing: whoever
// opens a chip makes one.
func (a *merging) covered(d *model.Device) bool {
	tracked := false
	for i := range a.snap.Processes {
		p := &a.snap.Processes[i]
		for _, u := range p.Devices {
			if u.Device != d.Index {
				continue
			}
			if onNoDevice(p) {
				return false // which may be this device's, by an id that does not follow from what the driver says
			}
			if !a.tracked[identity{p.PID, p.StartTicks}] {
				if !a.foreign(p) {
					return false
				}
				continue
			}
			tracked = true
		}
	}
	return tracked && d.HiddenFDs == 0
}

// onNoDevice tells whether a process accounts for a chip whose device is not
// known.
func onNoDevice(p *model.Process) bool {
	return slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == model.NoDevice && u.Source != "" })
}

func (a *merging) foreign(p *model.Process) bool {
	for _, known := range a.sweep.Processes {
		if known.PID == p.PID && known.StartTicks == p.StartTicks {
			return known.foreign
		}
	}
	return false
}
