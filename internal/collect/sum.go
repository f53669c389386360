package collect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
)

// addUp turns accounts into the figures of chips, and chips into devices.
func (j *join) addUp() {
	for i := range j.snap.Devices {
		d := &j.snap.Devices[i]
		exact := j.allSeen(d)
		for slot := range d.Chips {
			a := j.account(chipAt{i, slot}, 0)
			if exact {
				a.dropRegionDoubts()
			}
			j.finish(d, &d.Chips[slot], a)
		}
		sumDevice(d)
	}
	for _, id := range slices.Sorted(maps.Keys(j.strange)) {
		a := j.strange[id]
		chip := model.Chip{
			ID: a.id, Name: a.match.match.Name, Remote: a.match.match.Remote, Region: a.region,
			Candidates: a.match.match.Candidates,
		}
		a.fill(&chip.Memory)
		j.snap.Unmatched = append(j.snap.Unmatched, chip)
	}
	sorted.Stable(j.snap.StaleSlots, func(a, b *model.StaleSlot) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ChipID, b.ChipID))
	})
}

// allSeen reports whether every user of a device is accounted for by a source
// that does not depend on tt-metal's regions: what is unknown about a region
// does not matter then.
func (j *join) allSeen(d *model.Device) bool {
	seen := false
	for i := range j.snap.Processes {
		p := &j.snap.Processes[i]
		for k := range p.Devices {
			u := &p.Devices[k]
			switch {
			case u.Device != d.Index || p.State == model.Exited:
			case u.Source == "" && j.silent[p.ID()].Kind == model.NotTTMetal:
			case u.Source == "" || u.Source == model.FromShm:
				return false
			default:
				seen = true
			}
		}
	}
	return seen && d.HiddenFDs == 0
}

// dropRegionDoubts drops the doubts about regions.
func (a *account) dropRegionDoubts() {
	a.why = model.Known
	a.doubts = slices.DeleteFunc(slices.Clone(a.doubts), func(d model.Doubt) bool { return regionDoubts[d.Kind] })
}

var regionDoubts = map[model.DoubtKind]bool{
	model.SlotUnseen: true, model.SlotUnproven: true, model.SlotUndecided: true, model.SlotsChanging: true,
	model.SlotsOverflowed: true, model.RegionDenied: true, model.RegionUnreadable: true, model.LayoutUnknown: true,
	model.RegionMisnamed: true,
}

// deadOrAlive reports whether a doubt is about a slot of which is not known whether
// its process lives: it may be what a dead one left.
func deadOrAlive(k model.DoubtKind) bool {
	return k == model.SlotUnseen || k == model.SlotUnproven || k == model.SlotUndecided
}

// finish gives a chip of a device its figures.
func (j *join) finish(d *model.Device, chip *model.Chip, a *account) {
	if id, ok := a.id.Get(); ok {
		chip.ID = model.Value(id)
	}
	if chip.Region == "" {
		chip.Region = a.region
	}
	switch {
	case a.holders == 0 && (j.idle(d.Index) || j.othersOnly(d)):
		a.dropRegionDoubts()
		a.setUnused()
	case a.holders == 0 && j.covered(d) && model.WorstBound(a.doubts) == model.Exact && a.why == model.Known:
		a.setUnused()
	case a.holders == 0 && a.spoken && a.why == model.Known && model.WorstBound(a.doubts) == model.Exact && !j.used(d):
		a.setUnused()
	case !a.spoken && a.holders == 0 && len(a.doubts) == 0 && j.used(d):
		a.doubts = append(a.doubts, model.Doubt{Kind: model.Unaccounted})
	}
	if m := a.match.match; m.Basis != "" && m.Basis != model.BySysfs && a.spoken {
		a.doubts = model.AddDoubts(a.doubts, model.Doubt{Kind: model.ChipInferred, Chip: a.id.V, Basis: m.Basis})
	}
	a.fill(&chip.Memory)
	j.checkCapacity(d, &chip.Memory)
}

// setUnused sets every pool to exactly 0.
func (a *account) setUnused() {
	for _, pool := range regionPools() {
		a.used[pool] = model.Sum{}
		a.used[pool].Add(model.ExactBytes(0))
	}
}

// othersOnly reports whether every process that has a device open is known not
// to use tt-metal: none of them takes anything from its allocator.
func (j *join) othersOnly(d *model.Device) bool {
	if d.HiddenFDs+j.snap.Host.HiddenFDs > 0 || slices.ContainsFunc(d.Doubts, func(q model.Doubt) bool { return q.Kind == model.UsersUnknown }) {
		return false
	}
	others := false
	for i := range j.snap.Processes {
		p := &j.snap.Processes[i]
		for k := range p.Devices {
			switch {
			case p.Devices[k].Device != d.Index || p.State == model.Exited:
			case p.Devices[k].Source == "" && j.silent[p.ID()].Kind == model.NotTTMetal:
				others = true
			default:
				return false
			}
		}
	}
	return others
}

// used reports whether a process has the device open, as far as is known.
func (j *join) used(d *model.Device) bool {
	return d.HiddenFDs > 0 || slices.ContainsFunc(j.snap.Processes, func(p model.Process) bool {
		return p.State != model.Exited && slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == d.Index })
	})
}

// covered reports whether all that have a device open account for what they
// hold. A chip of it that none of them speaks of then holds nothing.
func (j *join) covered(d *model.Device) bool {
	tracked := false
	for i := range j.snap.Processes {
		p := &j.snap.Processes[i]
		for k := range p.Devices {
			u := &p.Devices[k]
			switch {
			case u.Device != d.Index || p.State == model.Exited:
			case u.Source == "" && j.silent[p.ID()].Kind == model.NotTTMetal:
			case u.Source == "":
				return false
			default:
				tracked = true
			}
		}
	}
	return tracked && d.HiddenFDs == 0
}

// fill writes the sums of an account into a memory.
func (a *account) fill(m *model.Memory) {
	m.Doubts = a.doubts
	bound := model.WorstBound(a.doubts)
	for pool := range m.Pools {
		s := &a.used[pool]
		if model.Pool(pool) != model.Kernel && a.why != model.Known {
			s.Miss(a.why)
		}
		if bound == model.AtLeast && model.Pool(pool) != model.Kernel {
			s.Miss(model.Absent)
		}
		s.Doubt(bound)
		m.Pools[pool].Used = s.Bytes()
		if a.whole() {
			m.Pools[pool].Occupied = a.occupied[pool].bytes()
		}
	}
	if len(a.allocators) == 1 && a.holders == 1 && a.whole() {
		for pool, p := range a.allocators[0] {
			to := &m.Pools[pool]
			to.Free, to.LargestFree, to.CoreLeast, to.CoreMost = p.Free, p.LargestFree, p.CoreLeast, p.CoreMost
			if p.Capacity.Known() {
				to.Total = p.Capacity
			}
		}
	}
	if len(a.cb) == 1 {
		m.CB = a.cb[0]
	} else if len(a.cb) > 1 {
		m.CB = model.CBMixed
	}
	if a.spoken {
		a.stale.Add(model.ExactBytes(0)) // what was read of its regions has no more
	}
	m.Stale = a.stale.Bytes()
	m.Tracking = a.tracking(m)
}

// whole reports whether no holder is missing from an account: none of its
// doubts, and no region that could not be read, hides one.
func (a *account) whole() bool {
	return a.why == model.Known && model.WorstBound(a.doubts) == model.Exact
}

// tracking says how far the figures of a chip go.
func (a *account) tracking(m *model.Memory) model.Tracking {
	dram := m.Pools[model.DRAM].Used
	_, bound, known := dram.Best()
	switch {
	case known && bound != model.AtLeast && !a.used[model.DRAM].Incomplete():
		return model.TrackOK
	case known:
		return model.TrackPartial
	case dram.Status() == model.Denied && a.holders == 0:
		return model.TrackDenied
	case dram.Status() == model.Unsupported && a.holders == 0:
		return model.TrackUnknown
	case a.holders > 0 || a.spoken:
		return model.TrackPartial
	}
	return model.TrackAbsent
}

// checkCapacity doubts figures that together are more than the chip has: each
// may be possible, all of them are not.
func (j *join) checkCapacity(d *model.Device, m *model.Memory) {
	limit := physical(d)
	for pool := range m.Pools {
		used := &m.Pools[pool].Used
		if n, _, ok := used.Best(); ok && limit[pool] != 0 && n > limit[pool] {
			*used = used.Doubted(model.Unsure)
			m.Doubts = model.AddDoubts(m.Doubts, model.Doubt{Kind: model.FigureImpossible})
		}
	}
}

// sumDevice gives a device the sums of its chips.
func sumDevice(d *model.Device) {
	m := &d.Memory
	var stale model.Sum
	for i := range d.Chips {
		c := &d.Chips[i].Memory
		m.Tracking = joinTracking(m.Tracking, c.Tracking)
		m.Doubts = model.AddDoubts(m.Doubts, c.Doubts...)
		if c.Stale.Known() || c.Stale.Status() != model.Absent || len(c.Doubts) > 0 {
			stale.Add(c.Stale) // nothing can be left on a chip that has no accounting
		}
		switch {
		case c.CB == "" || c.CB == m.CB:
		case m.CB == "":
			m.CB = c.CB
		default:
			m.CB = model.CBMixed
		}
	}
	m.Stale = stale.Bytes()
	for pool := range m.Pools {
		to := &m.Pools[pool]
		var used model.Sum
		var occupied occupancy
		seen := false // one allocator at least
		for i := range d.Chips {
			c := &d.Chips[i].Memory.Pools[pool]
			addTo(&used, c.Used, model.Pool(pool), m.CB)
			seen = seen || c.Occupied.Known()
			if c.Used.Exactly(0) && !c.Occupied.Known() {
				occupied.add(model.ExactBytes(0))
			} else {
				occupied.add(c.Occupied)
			}
		}
		to.Used = used.Bytes()
		if seen {
			to.Occupied = occupied.bytes()
		}
		sumAllocators(d, model.Pool(pool))
	}
}

// sumAllocators adds up what the allocators of a device's chips say of a pool,
// where all of them say it: a measured capacity is not added to a nominal one.
// The largest free block is that of the chip that has the largest; that of a core is of
// the cores of all chips.
func sumAllocators(d *model.Device, pool model.Pool) {
	to := &d.Memory.Pools[pool]
	total, free, largest := uint64(0), uint64(0), uint64(0)
	least, most := model.Reading[uint64]{}, model.Reading[uint64]{}
	for i := range d.Chips {
		c := &d.Chips[i].Memory.Pools[pool]
		if !c.Total.Known() || !c.Free.Known() {
			return
		}
		total, free, largest = total+c.Total.V, free+c.Free.V, max(largest, c.LargestFree.V)
		if c.CoreLeast.Known() && (!least.Known() || c.CoreLeast.V < least.V) {
			least = c.CoreLeast
		}
		if c.CoreMost.Known() && (!most.Known() || c.CoreMost.V > most.V) {
			most = c.CoreMost
		}
	}
	if len(d.Chips) == 0 {
		return
	}
	to.Total, to.Free, to.LargestFree = model.Value(total), model.Value(free), model.Value(largest)
	to.CoreLeast, to.CoreMost = least, most
}

// joinTracking is the state of two things together; empty is nothing.
func joinTracking(a, b model.Tracking) model.Tracking {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return model.TrackPartial
}
