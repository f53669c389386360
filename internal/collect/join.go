package collect

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// join makes the memory part of one snapshot out of what the sources claim:
//
//	place      each claim on a chip of a device, or on none
//	believe    it as far as its author may speak
//	choose     one source per process: two are never added
//	account    the chosen claims to processes and chips
//	cover      what no claim covers of a process becomes a doubt on its devices
//	add up     chips, then devices
type join struct {
	snap   *model.Snapshot
	sets   []claim.Set
	places map[uint64]place
	idle   func(device int) bool // according to the driver no process has it open
	opens  func(id model.ProcessID, device int) proc.Hold
	// unopened: reports for devices that their process does not have open count, too.
	unopened bool

	held   map[model.ProcessID][]holding
	chosen map[model.ProcessID]model.Source
	silent map[model.ProcessID]model.Doubt
	// silentOn are those that are silent about some of their chips.
	silentOn map[model.ProcessID][]claim.Silent
	chips    map[chipAt]*account
	strange  map[uint64]*account // chips behind none of the devices, or behind one of several
}

// chipAt is a chip of the snapshot: a position in Devices and one in its Chips.
type chipAt struct{ device, slot int }

// holding is a claim with its place.
type holding struct {
	*claim.Held
	source model.Source
	at     chipAt // device is noPlace where the chip has none
	// refused: its author may not speak for that chip, or there is not so much. It is
	// shown with the process, and in no sum. tooMuch: of the latter there is no figure.
	refused, tooMuch bool
}

func newJoin(s *model.Snapshot, sets []claim.Set, places map[uint64]place) *join {
	return &join{
		snap: s, sets: sets, places: places, idle: func(int) bool { return false },
		opens: func(model.ProcessID, int) proc.Hold { return proc.Held },
		held:  map[model.ProcessID][]holding{}, chosen: map[model.ProcessID]model.Source{},
		silent: map[model.ProcessID]model.Doubt{}, silentOn: map[model.ProcessID][]claim.Silent{},
		chips: map[chipAt]*account{}, strange: map[uint64]*account{},
	}
}

func (j *join) run() {
	j.assignChips()
	for id := range j.held {
		j.choose(id)
		j.merge(id)
	}
	j.accountChips()
	for i := range j.snap.Processes {
		j.accountProcess(&j.snap.Processes[i])
	}
	j.accountLeft()
	j.cover()
	j.addUp()
	sorted.By(j.snap.Processes, func(a, b *model.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTicks, b.StartTicks))
	})
}

// assignChips gives every claim its chip.
func (j *join) assignChips() {
	byID := map[model.ProcessID]*model.Process{}
	for i := range j.snap.Processes {
		byID[j.snap.Processes[i].ID()] = &j.snap.Processes[i]
	}
	for i := range j.sets {
		set := &j.sets[i]
		for k := range set.Held {
			h := holding{Held: &set.Held[k], source: set.Source}
			h.at = j.locate(&h.Chip, byID[h.Process])
			if h.Chip.Some && h.at.device == noPlace {
				h.Held = unplaced(h.Held)
			}
			j.believe(&h, byID[h.Process])
			j.held[h.Process] = append(j.held[h.Process], h)
		}
		j.sharePlaceless(set)
		for _, id := range set.Nothing {
			j.holdNothing(set.Source, byID[id])
		}
		for _, q := range set.Silent {
			if q.Chip != 0 {
				j.silentOn[q.Process] = append(j.silentOn[q.Process], q)
			} else if _, ok := j.silent[q.Process]; !ok {
				j.silent[q.Process] = q.Why
			}
		}
	}
}

// holdNothing enters that a process holds nothing on all devices it has open.
func (j *join) holdNothing(source model.Source, p *model.Process) {
	for _, index := range opened(p) {
		i := slices.IndexFunc(j.snap.Devices, func(d model.Device) bool { return d.Index == index })
		if i < 0 {
			continue
		}
		for slot := range j.snap.Devices[i].Chips {
			h := claim.Held{Process: p.ID(), Chip: claim.Chip{OnDevice: true, Number: index}}
			for _, pool := range blockPools() {
				h.Bytes[pool] = model.ExactBytes(0)
			}
			j.held[p.ID()] = append(j.held[p.ID()], holding{Held: &h, source: source, at: chipAt{i, slot}})
		}
	}
}

// locate finds the chip that a claim of a process means.
func (j *join) locate(c *claim.Chip, p *model.Process) chipAt {
	none := chipAt{device: noPlace}
	switch {
	case c.OnDevice:
		if i := slices.IndexFunc(j.snap.Devices, func(d model.Device) bool { return d.Index == c.Number }); i >= 0 {
			return chipAt{device: i}
		}
	case c.Some:
		return j.onlyChip(p)
	case c.ByNumber:
		numbered := order(j.snap.Devices, visible(j.snap.Devices, opened(p), c.Visible))
		if c.Number >= 0 && c.Number < len(numbered) {
			return numbered[c.Number]
		}
	default:
		if at, ok := j.places[c.ID]; ok && at.device != noPlace {
			return chipAt{at.device, at.slot}
		}
	}
	return none
}

// onlyChip is the chip of a process that has one device open, with one chip.
func (j *join) onlyChip(p *model.Process) chipAt {
	open := opened(p)
	if len(open) == 1 {
		i := slices.IndexFunc(j.snap.Devices, func(d model.Device) bool { return d.Index == open[0] })
		if i >= 0 && len(j.snap.Devices[i].Chips) == 1 {
			return chipAt{device: i}
		}
	}
	return chipAt{device: noPlace}
}

// unplaced is a claim of some chip, where it could be one of several: its
// allocator may stand for a mesh, and take as much of each of its chips.
func unplaced(h *claim.Held) *claim.Held {
	c := *h
	c.Partial, c.Pools = true, nil
	for pool := range c.Bytes {
		c.Bytes[pool] = c.Bytes[pool].Doubted(model.AtLeast)
	}
	c.Doubts = model.AddDoubts(slices.Clone(h.Doubts), model.Doubt{Kind: model.ChipUnknown, PID: h.Process.PID})
	return &c
}

// sharePlaceless lets the other claims of a process know that some of what it
// holds has no place: it may be on their chips.
func (j *join) sharePlaceless(set *claim.Set) {
	for k := range set.Held {
		if !set.Held[k].Chip.Some {
			continue
		}
		list := j.held[set.Held[k].Process]
		nowhere := slices.ContainsFunc(list, func(h holding) bool {
			return h.source == set.Source && h.Chip.Some && h.at.device == noPlace
		})
		for i := range list {
			if h := &list[i]; nowhere && h.source == set.Source && !h.Partial {
				c := *h.Held
				c.Partial = true
				h.Held = &c
			}
		}
	}
}

// opened are the kernel indexes of the devices that a process has open.
func opened(p *model.Process) (list []int) {
	if p == nil {
		return nil
	}
	for i := range p.Devices {
		if u := &p.Devices[i]; u.Device != model.NoDevice && u.OpenFDs.V > 0 {
			list = append(list, u.Device)
		}
	}
	return list
}

// numbers tells which chips reporters mean by their own numbers.
func (j *join) numbers() map[model.ProcessID]map[int]model.ChipPlace {
	all := map[model.ProcessID]map[int]model.ChipPlace{}
	for id, list := range j.held {
		for i := range list {
			h := &list[i]
			if !h.Chip.ByNumber || h.refused || h.at.device == noPlace {
				continue
			}
			d := &j.snap.Devices[h.at.device]
			if all[id] == nil {
				all[id] = map[int]model.ChipPlace{}
			}
			place := model.ChipPlace{Device: d.Index}
			if h.at.slot < len(d.Chips) {
				place.Name = d.Chips[h.at.slot].Name
			}
			all[id][h.Chip.Number] = place
		}
	}
	return all
}
