package collect

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// cover goes through the users of every device: one of whom nothing is known
// makes the figures of its chips at least, and says why.
func (j *join) cover() {
	for i := range j.snap.Devices {
		d := &j.snap.Devices[i]
		for k := range j.snap.Processes {
			j.coverUser(d, i, &j.snap.Processes[k])
		}
		if n := d.HiddenFDs + j.snap.Host.HiddenFDs; n > 0 {
			j.miss(i, model.Doubt{Kind: model.UsersHidden, Count: n}, model.Absent)
		}
		for _, q := range d.Doubts {
			if q.Kind == model.UsersUnknown {
				j.miss(i, q, model.Absent)
			}
		}
	}
	for id, a := range j.strange {
		j.coverCandidates(id, a)
	}
}

// coverUser looks at one process on one device.
func (j *join) coverUser(d *model.Device, at int, p *model.Process) {
	k := slices.IndexFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == d.Index })
	if k < 0 || p.State != model.Running {
		return
	}
	u := &p.Devices[k]
	if j.holdsUnplaced(p.ID()) {
		why := model.Doubt{Kind: model.ChipUnknown, PID: p.PID}
		u.Doubts = model.AddDoubts(u.Doubts, why)
		u.Tracking = model.TrackPartial
		if u.Source == "" {
			u.Tracking = model.TrackAbsent
		}
		j.miss(at, why, model.Absent)
		return
	}
	if u.Source != "" {
		return
	}
	if j.refused(p.ID(), at) {
		why := model.Doubt{Kind: model.NotBelieved, PID: p.PID, Devices: []int{d.Index}}
		u.Doubts, u.Tracking = model.AddDoubts(u.Doubts, why), model.TrackAbsent
		j.miss(at, why, model.Implausible)
		return
	}
	if j.chosen[p.ID()] != "" {
		j.elsewhere(p, u, at)
		return
	}
	why := j.whySilent(p, d, at)
	u.Doubts = model.AddDoubts(u.Doubts, why)
	u.Tracking = model.TrackAbsent
	status := model.Absent
	if why.Kind == model.ProcessDenied {
		u.Tracking, status = model.TrackDenied, model.Denied
		for _, pool := range regionPools() {
			u.Memory[pool] = model.NoBytes(model.Denied)
		}
	}
	if why.Kind != model.NotTTMetal { // such a program takes nothing from tt-metal's allocator
		j.miss(at, why, status)
	}
}

// whySilent is why nothing is known of a process on a device. A region that it
// cannot account in is a reason for the device that has the region's chip, and
// for no other.
func (j *join) whySilent(p *model.Process, d *model.Device, at int) model.Doubt {
	why, ok := j.silent[p.ID()]
	if !ok {
		return model.Doubt{Kind: model.NothingKnown, PID: p.PID}
	}
	for _, q := range j.silentOn[p.ID()] {
		if place := j.places[q.Chip]; place.device == at || place.device == noPlace && slices.Contains(place.match.Candidates, d.Index) {
			return q.Why
		}
	}
	return why
}

// holdsUnplaced reports whether a process holds something on a chip that is one of
// several it has open.
func (j *join) holdsUnplaced(id model.ProcessID) bool {
	return slices.ContainsFunc(j.held[id], func(h holding) bool {
		return h.Chip.Some && h.at.device == noPlace && h.source == j.chosen[id]
	})
}

// refused reports whether what a process says of a device is not believed.
func (j *join) refused(id model.ProcessID, device int) bool {
	return slices.ContainsFunc(j.held[id], func(h holding) bool {
		return h.refused && h.at.device == device && h.source == j.chosen[id]
	})
}

// elsewhere is for a process that accounts for other chips than those of a
// device it has open. A process accounts for every chip it opens: it holds nothing
// here, unless one of its chips could not be placed.
func (j *join) elsewhere(p *model.Process, u *model.DeviceUse, at int) {
	for i := range j.held[p.ID()] {
		h := &j.held[p.ID()][i]
		if h.source != j.chosen[p.ID()] || h.at.device != noPlace {
			continue
		}
		u.Tracking = model.TrackAbsent
		if candidates := j.places[h.Chip.ID].match.Candidates; slices.Contains(candidates, u.Device) {
			u.Doubts = model.AddDoubts(u.Doubts, model.Doubt{Kind: model.ChipAmbiguous, Chip: h.Chip.ID, Devices: candidates})
			return // coverCandidates tells the chips
		}
		why := model.Doubt{Kind: model.OtherChipsOnly, PID: p.PID}
		u.Doubts = model.AddDoubts(u.Doubts, why)
		j.miss(at, why, model.Absent)
		return
	}
	if j.guessed(p.ID()) {
		why := model.Doubt{Kind: model.ProcessDenied, PID: p.PID, UID: p.UID.V}
		u.Doubts, u.Tracking = model.AddDoubts(u.Doubts, why), model.TrackDenied
		for _, pool := range regionPools() {
			u.Memory[pool] = model.NoBytes(model.Denied)
		}
		j.miss(at, why, model.Denied)
		return
	}
	if j.chosen[p.ID()] == model.FromShm {
		for _, q := range j.silentOn[p.ID()] {
			if j.places[q.Chip].device == at {
				u.Doubts, u.Tracking = model.AddDoubts(u.Doubts, q.Why), model.TrackAbsent
				j.miss(at, q.Why, model.Absent)
				return
			}
		}
	}
	u.Source, u.Tracking = j.chosen[p.ID()], model.TrackOK
	for _, pool := range regionPools() {
		u.Memory[pool] = model.ExactBytes(0)
	}
}

// guessed reports whether a process may not be inspected, and was identified as
// the owner of a slot by its pid and name: what else it accounts for is unknown.
func (j *join) guessed(id model.ProcessID) bool {
	return slices.ContainsFunc(j.held[id], func(h holding) bool {
		return slices.ContainsFunc(h.Doubts, func(d model.Doubt) bool { return d.Kind == model.OwnerGuessed })
	})
}

// miss marks the figures of all chips of a device: they lack one of its
// processes.
func (j *join) miss(device int, why model.Doubt, status model.Status) {
	for slot := range j.snap.Devices[device].Chips {
		a := j.account(chipAt{device, slot}, 0)
		a.doubts = model.AddDoubts(a.doubts, why)
		for _, pool := range regionPools() {
			a.used[pool].Miss(status)
		}
	}
}

// coverCandidates lets the devices of which one has a chip know that its
// memory may be theirs.
func (j *join) coverCandidates(id uint64, a *account) {
	if a.nothing() {
		return
	}
	candidates := a.match.match.Candidates
	why := model.Doubt{Kind: model.ChipAmbiguous, Chip: id, Devices: candidates}
	for i := range j.snap.Devices {
		if index := j.snap.Devices[i].Index; slices.Contains(candidates, index) && !j.idle(index) {
			j.miss(i, why, model.Absent)
		}
	}
}

// nothing reports whether it is certain that no process holds anything there.
func (a *account) nothing() bool {
	if a.why != model.Known || model.WorstBound(a.doubts) != model.Exact {
		return false
	}
	for _, pool := range regionPools() {
		if s := &a.used[pool]; !s.Empty() {
			if n, _, known := s.Bytes().Best(); !known || n > 0 {
				return false
			}
		}
	}
	return true
}
