package collect

import (
	"slices"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// account is what a chip holds, while it is being added up.
type account struct {
	used       [model.NumPools]model.Sum
	occupied   [model.NumPools]occupancy
	stale      model.Sum
	doubts     []model.Doubt
	cb         []model.CBMeaning
	why        model.Status // of the first region that says nothing; Known if all do
	region     string
	spoken     bool // a source has something to say of the chip
	holders    int  // live claims
	allocators []*claim.Pools

	id      model.Reading[uint64]
	match   place
	holding []int // pids of live holders
}

// occupancy adds up what the blocks of a pool take. Views prefer it to what
// buffers asked for, so one part that is unknown makes all of it unknown: the
// rest alone would be shown as the whole.
type occupancy struct {
	sum     model.Sum
	unknown bool
}

func (o *occupancy) add(b model.Bytes) {
	if !b.Known() {
		o.unknown = true
		return
	}
	o.sum.Add(b)
}

func (o *occupancy) bytes() model.Bytes {
	if o.unknown {
		return model.Bytes{}
	}
	return o.sum.Bytes()
}

// regionPools are the pools that every source accounts for.
func regionPools() []model.Pool {
	return []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace, model.CB}
}

func (j *join) account(at chipAt, id uint64) *account {
	if at.device == noPlace {
		a := j.strange[id]
		if a == nil {
			a = &account{why: model.Known, id: model.Value(id), match: j.places[id]}
			j.strange[id] = a
		}
		return a
	}
	a := j.chips[at]
	if a == nil {
		a = &account{why: model.Known}
		j.chips[at] = a
	}
	return a
}

// accountChips enters what sources say of chips as a whole. A chip has two
// regions where a container has its own /dev/shm, or after its id changed.
func (j *join) accountChips() {
	for i := range j.sets {
		for k := range j.sets[i].Chips {
			c := &j.sets[i].Chips[k]
			a := j.account(j.locate(c, nil), c.ID)
			a.match = j.places[c.ID]
			a.speak(c)
		}
	}
}

// speak enters what one region says of the chip.
func (a *account) speak(c *claim.Chip) {
	a.spoken, a.id = true, model.Value(c.ID)
	if a.region == "" {
		a.region = c.Region
	}
	if c.Why != model.Known {
		a.why = c.Why
		a.stale.Miss(c.Why)
	}
	for i := range c.Doubts {
		if deadOrAlive(c.Doubts[i].Kind) {
			a.stale.Miss(model.Absent)
		}
	}
	a.doubts = model.AddDoubts(a.doubts, c.Doubts...)
	for pool, b := range c.Together {
		if b.Known() {
			a.used[pool].Add(b)
		}
	}
}

// accountProcess enters what the chosen source says of a process, with the
// process and with its chips.
func (j *join) accountProcess(p *model.Process) {
	var sums map[int]*[model.NumPools]model.Sum
	for i := range p.Devices {
		p.Devices[i].Source, p.Devices[i].Memory, p.Devices[i].Tracking = "", model.PoolBytes{}, ""
	}
	source := j.chosen[p.ID()]
	for i := range j.held[p.ID()] {
		h := &j.held[p.ID()][i]
		if h.source != source {
			continue
		}
		if sums == nil {
			sums = map[int]*[model.NumPools]model.Sum{}
		}
		j.enter(p, h, sums)
	}
	for index, s := range sums {
		u := useOf(p, index)
		for pool := range s {
			u.Memory[pool] = s[pool].Bytes()
		}
		u.Tracking = trackingOf(u)
	}
	sorted.Stable(p.Devices, func(a, b *model.DeviceUse) int { return a.Device - b.Device })
	j.dispute(p, source)
}

// enter adds one claim to its process and its chip.
func (j *join) enter(p *model.Process, h *holding, sums map[int]*[model.NumPools]model.Sum) {
	index := model.NoDevice
	if h.at.device != noPlace && !h.refused {
		index = j.snap.Devices[h.at.device].Index
	}
	u := useOf(p, index)
	u.Source = h.source
	u.Doubts = model.AddDoubts(u.Doubts, h.Doubts...)
	switch {
	case h.refused:
		u.Doubts = model.AddDoubts(u.Doubts, model.Doubt{Kind: model.NotBelieved, Devices: []int{j.snap.Devices[h.at.device].Index}})
	case index == model.NoDevice && h.Chip.ByNumber:
		u.Doubts = model.AddDoubts(u.Doubts, model.Doubt{Kind: model.NumberUnknown, Count: h.Chip.Number})
	}
	if sums[index] == nil {
		sums[index] = &[model.NumPools]model.Sum{}
	}
	for pool, b := range h.Bytes {
		if h.tooMuch && b.Status() == model.Known {
			b = model.NoBytes(model.Implausible)
		}
		if b.Status() != model.Absent || len(h.Doubts) > 0 && pool < int(model.Kernel) {
			addTo(&sums[index][pool], b, model.Pool(pool), h.CB)
		}
	}
	id, hasID := j.chipID(h)
	if hasID {
		u.Chips = addChipUse(u.Chips, id, h.Bytes)
	}
	if h.refused || index == model.NoDevice && !hasID {
		return
	}
	a := j.account(h.at, id)
	if hasID && !a.id.Known() { // no region tells it
		a.id, a.match = model.Value(id), j.places[id]
	}
	a.enter(h)
}

// chipID is the unique id of the chip that a claim is about, if it is known.
func (j *join) chipID(h *holding) (uint64, bool) {
	if !h.Chip.ByNumber && !h.Chip.OnDevice && !h.Chip.Some {
		return h.Chip.ID, true
	}
	if h.at.device == noPlace {
		return 0, false
	}
	chips := j.snap.Devices[h.at.device].Chips
	if h.at.slot >= len(chips) {
		return 0, false
	}
	return chips[h.at.slot].ID.Get()
}

// enter adds a claim to a chip's sums.
func (a *account) enter(h *holding) {
	a.spoken = true
	a.holders++
	a.holding = append(a.holding, h.Process.PID)
	for pool, b := range h.Bytes {
		switch {
		case h.Together: // it is in the chip's own figure
		case b.Known() || b.Status() != model.Absent || lost(h.Doubts):
			addTo(&a.used[pool], b, model.Pool(pool), h.CB)
		}
	}
	if h.CB != "" && h.Bytes[model.CB].Known() && !slices.Contains(a.cb, h.CB) {
		a.cb = append(a.cb, h.CB)
	}
	if h.Pools != nil {
		a.allocators = append(a.allocators, h.Pools)
	}
	for _, pool := range blockPools() {
		a.occupy(h.Held, pool)
	}
}

// blockPools are the pools that allocators keep blocks of.
func blockPools() []model.Pool { return []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} }

// occupy enters what the blocks of a claim take of a pool.
func (a *account) occupy(h *claim.Held, pool model.Pool) {
	seen := h.Pools != nil
	switch {
	case seen && h.Pools[pool].Occupied.Known():
		a.occupied[pool].add(h.Pools[pool].Occupied)
	case h.Bytes[pool].Exactly(0):
	case seen && !h.Partial && h.Bytes[pool].Status() == model.Absent: // its allocator has no such pool
	default:
		a.occupied[pool].unknown = true
	}
}

// addTo adds a figure to a sum. Circular buffers of which the largest program is
// known lie over each other: the largest of them counts.
func addTo(s *model.Sum, b model.Bytes, pool model.Pool, means model.CBMeaning) {
	if pool == model.CB && means == model.CBLargest {
		s.Overlap(b)
		return
	}
	s.Add(b)
}

// lost reports whether a claim's missing figures stand for memory that is there.
func lost(doubts []model.Doubt) bool {
	return model.WorstBound(doubts) == model.AtLeast || slices.ContainsFunc(doubts, func(d model.Doubt) bool {
		return d.Kind == model.RecordsErased || d.Kind == model.SlotsFull || d.Kind == model.FigureImpossible
	})
}

func addChipUse(list []model.ChipUse, id uint64, b model.PoolBytes) []model.ChipUse {
	for i := range list {
		if list[i].ChipID == id {
			for pool := range b {
				list[i].Memory[pool] = model.AddUp(list[i].Memory[pool], b[pool])
			}
			return list
		}
	}
	return append(list, model.ChipUse{ChipID: id, Memory: b})
}

func useOf(p *model.Process, index int) *model.DeviceUse {
	for i := range p.Devices {
		if p.Devices[i].Device == index {
			return &p.Devices[i]
		}
	}
	p.Devices = append(p.Devices, model.DeviceUse{Device: index})
	return &p.Devices[len(p.Devices)-1]
}

// trackingOf says how far the figures of a process on a device go.
func trackingOf(u *model.DeviceUse) model.Tracking {
	for _, pool := range regionPools() {
		b := u.Memory[pool]
		if _, bound, known := b.Best(); pool != model.CB && (!known || bound == model.AtLeast) {
			return model.TrackPartial
		}
	}
	return model.TrackOK
}

// accountLeft enters what dead processes left.
func (j *join) accountLeft() {
	for i := range j.sets {
		for k := range j.sets[i].Left {
			l := &j.sets[i].Left[k]
			at := j.locate(&claim.Chip{ID: l.Chip}, nil)
			a := j.account(at, l.Chip)
			total := l.Bytes.Total()
			a.stale.Add(total)
			if total.Exactly(0) {
				continue // a slot that is not free, and nothing in it
			}
			g := model.StaleSlot{
				Region: l.Region, ChipID: l.Chip, Device: model.NoDevice, PID: l.PID, Name: l.Name,
				Bytes: l.Bytes, Updated: l.Updated, Mapped: l.Mapped,
			}
			if at.device != noPlace {
				g.Device = j.snap.Devices[at.device].Index
			}
			j.snap.StaleSlots = append(j.snap.StaleSlots, g)
		}
	}
}

// dispute notes where another source says something else of a process than
// the chosen one, and has no doubt about it.
func (j *join) dispute(p *model.Process, chosen model.Source) {
	for _, source := range claim.Ranks {
		if source == chosen || chosen == "" {
			continue
		}
		for _, pool := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
			ours, mine := j.total(p.ID(), chosen, pool)
			theirs, spoke := j.total(p.ID(), source, pool)
			if !mine || !spoke || ours == theirs {
				continue
			}
			for i := range p.Devices {
				if u := &p.Devices[i]; u.Source == chosen {
					u.Doubts = model.AddDoubts(u.Doubts, model.Doubt{Kind: model.SourcesDisagree, Source: source})
				}
			}
		}
	}
}

// total is what a source says that a process holds of a pool on all chips; ok
// is false if it says nothing or doubts it.
func (j *join) total(id model.ProcessID, source model.Source, pool model.Pool) (n uint64, ok bool) {
	for i := range j.held[id] {
		h := &j.held[id][i]
		if h.source != source || h.refused {
			continue
		}
		v, bound, known := h.Bytes[pool].Best()
		if !known || bound != model.Exact || h.Partial {
			return 0, false
		}
		n, ok = n+v, true
	}
	return n, ok
}
