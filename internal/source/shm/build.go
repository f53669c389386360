package shm

import (
	"cmp"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// build returns the published form of a region.
func (r *Reader) build(reg *region) *Region {
	reg.update = update{}
	out := &Region{
		ID: reg.id, Path: reg.path, Owner: reg.owner, Deleted: reg.deleted, Since: reg.since,
		Why: model.Known, file: reg.inode,
	}
	if why, doubt := unreadable(reg); why != model.Known {
		out.Why, out.Doubts, out.Version = why, []model.Doubt{doubt}, uint32(doubt.Version)
		return out
	}
	img := reg.parsed
	out.Version, out.DeviceID = img.Layout.Version, img.DeviceID
	out.Diagnostics = diagnose(reg.file)

	failures := r.releases.failures
	b := builder{r: r, reg: reg, out: out, holders: r.holders(reg), erased: map[model.ProcessID]bool{}}
	out.Mapped = make([]int, 0, len(b.holders))
	for _, p := range b.holders {
		out.Mapped = append(out.Mapped, p.PID)
		// A writer of layout 3 in a region of layout 4: a newer release has
		// initialised it again.
		if reg.wiped[p.ProcessID] || img.Layout.Version == 4 && r.releases.meaningOf(img.Layout, p).v3 {
			b.erased[p.ProcessID] = true
		}
	}
	out.Uses = make([]*Use, 0, len(img.Slots))
	b.addSlots()
	slots := membersOf(img).pids
	for _, p := range b.holders {
		if !slices.Contains(slots[:], int32(p.InnerPID)) {
			b.addWithoutSlot(p)
		}
	}
	b.finish()
	if !b.unsettled && len(b.erased) == 0 && r.releases.failures == failures {
		reg.update = newUpdate(reg, out)
	}
	return out
}

// unreadable returns why a region was not parsed; Known if it was.
func unreadable(reg *region) (model.Status, model.Doubt) {
	d := model.Doubt{Region: reg.path, UID: reg.owner, Chip: reg.id}
	unknown, isUnknown := errors.AsType[*UnknownLayoutError](reg.parseErr)
	switch {
	case reg.loadErr != nil && denied(reg.loadErr):
		d.Kind = model.RegionDenied
		return model.Denied, d
	case reg.loadErr != nil:
		d.Kind, d.Detail = model.RegionUnreadable, reg.loadErr.Error()
		return model.Absent, d
	case isUnknown:
		d.Kind, d.Version, d.Count = model.LayoutUnknown, int(unknown.Version), unknown.Size
		return model.Unsupported, d
	case reg.parseErr != nil:
		d.Kind, d.Detail = model.RegionUnreadable, reg.parseErr.Error()
		return model.Absent, d
	case reg.parsed.Layout.idInHeader && reg.parsed.ChipID != reg.id && reg.id >= smallID:
		d.Kind, d.Chip, d.Version = model.RegionMisnamed, reg.parsed.ChipID, int(reg.parsed.Layout.Version)
		return model.Unsupported, d
	}
	return model.Known, d
}

// smallID: below it an id is a logical device number, which tt-metal falls
// back to where it has no better one; then the header may differ.
const smallID = 256

func denied(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

func diagnose(f *file) Diagnostics {
	img := f.parsed
	d := Diagnostics{Refs: img.Refs, Active: img.Active, Slots: len(img.Slots), Odd: img.Odd}
	for i, pool := range regionPools {
		if pool == model.CB && !img.Layout.cbIsSum {
			continue
		}
		d.Unaccounted[i] = int64(img.Totals[i] - f.held[i])
	}
	return d
}

// overflowed reports whether more processes account in a region than it has
// slots for.
func (d *Diagnostics) overflowed() bool {
	for i, pool := range regionPools {
		if pool != model.CB && d.Unaccounted[i] > 0 {
			return d.Slots == numSlots
		}
	}
	return false
}

// builder turns the judged slots of one region into a Region.
type builder struct {
	r       *Reader
	reg     *region
	out     *Region
	holders []*process
	erased  map[model.ProcessID]bool // holders whose slot does not say what they hold
	// unsettled: what is published depends on more than the slots, their verdicts
	// and the mappings of processes.
	unsettled bool

	together [model.NumPools]model.Sum
}

// addDoubt adds a doubt about the figures of the region, once.
func (b *builder) addDoubt(d model.Doubt) {
	d.Chip = b.reg.id
	b.out.Doubts = model.AddDoubts(b.out.Doubts, d)
}

// addSlots turns the judged slots into uses and stale slots.
func (b *builder) addSlots() {
	changing := b.reg.torn
	b.unsettled = b.reg.changing
	for _, slot := range b.reg.parsed.Slots {
		pid := int(slot.PID)
		switch st := b.reg.states[slot.Index]; {
		case st == nil:
			changing = true
		case st.verdict == undecided:
			b.unsettled = true
			b.addUnknown(slot, model.Doubt{Kind: model.SlotUndecided, SlotPID: pid})
		case st.verdict == dead:
			b.out.StaleSlots = append(b.out.StaleSlots, ghostOf(slot, slot.Bytes, 0))
		case st.verdict == unseen && st.doubt != 0:
			b.addUnknown(slot, model.Doubt{Kind: model.SlotUnproven, PID: st.doubt, SlotPID: pid, UID: b.reg.owner})
		case st.verdict == unseen:
			b.addUnknown(slot, model.Doubt{Kind: model.SlotUnseen, SlotPID: pid, Name: slot.Name})
		case st.verdict == contested:
			b.addContested(st)
		default:
			b.addLive(st)
		}
	}
	if changing {
		b.unsettled = true
		b.addDoubt(model.Doubt{Kind: model.SlotsChanging})
	}
}

// addUnknown adds a slot whose owner may be dead or alive. An empty one makes
// no figure doubtful.
func (b *builder) addUnknown(slot Slot, why model.Doubt) {
	b.out.Unknown = append(b.out.Unknown, ghostOf(slot, slot.Bytes, 0))
	if slot.Bytes != [numPools]uint64{} {
		b.addDoubt(why)
	}
}

// addLive adds the slot of one live process.
func (b *builder) addLive(st *slotState) {
	p := st.owners[0]
	u := b.r.liveUse(b.reg, st)
	if st.base != nil && !st.base.suspected {
		b.out.StaleSlots = append(b.out.StaleSlots, ghostOf(st.base.slot, st.base.leftBytes(st.slot), p.PID))
	}
	if b.erased[p.ProcessID] {
		u.clearBytes(model.Doubt{Kind: model.RecordsErased})
	}
	b.addUse(u, p)
}

// liveUse returns what the slot of one live process says about it.
func (r *Reader) liveUse(reg *region, st *slotState) *Use {
	p := st.owners[0]
	u := &Use{PID: p.PID, StartTicks: p.StartTicks, Slot: st.slot.Index, Updated: st.slot.Updated}
	u.Bytes, u.Doubts = st.bytesOf(reg.capacity)
	if !st.sure {
		u.Doubts = model.AddDoubts(u.Doubts, model.Doubt{Kind: model.OwnerGuessed})
	}
	return u
}

// addContested adds the slot of several live processes. What each of them holds
// is unknown; what they hold together is known.
func (b *builder) addContested(st *slotState) {
	pids := make([]int, len(st.owners))
	for i, p := range st.owners {
		pids[i] = p.PID
	}
	for _, p := range st.owners {
		u := &Use{PID: p.PID, StartTicks: p.StartTicks, Slot: st.slot.Index, Updated: st.slot.Updated}
		u.clearBytes(model.Doubt{Kind: model.SlotShared, PIDs: pids})
		u.Together = true
		b.addUse(u, p)
	}
	bytes, _ := st.bytesOf(b.reg.capacity)
	for _, pool := range regionPools {
		b.together[pool].Add(bytes[pool].Doubted(model.Unsure))
	}
}

// addWithoutSlot adds a process that maps the region and has no slot.
func (b *builder) addWithoutSlot(p *process) {
	u := &Use{PID: p.PID, StartTicks: p.StartTicks, Slot: -1}
	for _, pool := range regionPools {
		u.Bytes[pool] = model.ExactBytes(0)
	}
	switch {
	case b.erased[p.ProcessID]:
		u.clearBytes(model.Doubt{Kind: model.RecordsErased})
	case len(b.reg.parsed.Slots) == numSlots:
		// A process that allocates now, even a forked child, has no slot.
		u.clearBytes(model.Doubt{Kind: model.SlotsFull, Count: len(b.out.StaleSlots)})
	case b.reg.parsed.Layout.Version == 4:
		b.unsettled = true // whether it is a forked child ends with its parent, unnoticed
		if !forked(p, b.holders, b.reg) {
			u.clearBytes(model.Doubt{Kind: model.RecordsErased}) // there, attaching takes a slot
		}
	}
	b.addUse(u, p)
}

// clearBytes drops the figures of a use, for a reason.
func (u *Use) clearBytes(why model.Doubt) {
	for _, pool := range regionPools {
		u.Bytes[pool] = model.NoBytes(model.Absent)
	}
	u.Doubts = []model.Doubt{why}
}

// addUse adds a use, with the doubts about every program of its release.
func (b *builder) addUse(u *Use, p *process) {
	u.interpret(b.r.releases.meaningOf(b.reg.parsed.Layout, p))
	b.out.Uses = append(b.out.Uses, u)
}

// interpret adds what is doubtful about every program of a release.
func (u *Use) interpret(m *meaning) {
	u.CB = m.cb
	bound := max(m.bound, model.WorstBound(u.Doubts))
	if len(u.Doubts) == 0 {
		u.Doubts = m.doubts
	} else {
		u.Doubts = append(u.Doubts, m.doubts...)
	}
	for _, pool := range regionPools {
		u.Bytes[pool] = u.Bytes[pool].Doubted(min(bound, model.Unsure))
	}
	u.Bytes[model.CB] = u.Bytes[model.CB].Doubted(model.Unsure)
}

func (b *builder) finish() {
	slices.SortFunc(b.out.Uses, func(a, c *Use) int {
		return cmp.Or(cmp.Compare(a.PID, c.PID), cmp.Compare(a.Slot, c.Slot))
	})
	for _, pool := range regionPools {
		b.out.Together[pool] = b.together[pool].Bytes()
	}
	if b.out.Diagnostics.overflowed() {
		b.addDoubt(model.Doubt{Kind: model.SlotsOverflowed})
	}
}
