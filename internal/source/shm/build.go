package shm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// build makes the published form of a region.
func (r *Reader) build(reg *region) *Region {
	out := &Region{
		ID: reg.id, Path: reg.path, Owner: reg.owner, Deleted: reg.deleted,
		Tracking: model.TrackOK, file: reg.inode,
	}
	if !r.buildUnreadable(reg, out) {
		return out
	}
	img := reg.parsed
	out.Version, out.DeviceID, out.CBMeans = img.Layout.Version, img.DeviceID, img.Layout.CBMeans
	out.Diagnostics = diagnose(img)

	b := builder{reg: reg, out: out, holders: r.holders(reg), lost: map[identity]string{}}
	for _, p := range b.holders {
		out.Mapped = append(out.Mapped, p.pid)
		switch {
		case img.Layout.Version == 4 && knownV3(r.releases.of(p)):
			b.lost[p.identity] = whyReinitialised
		case reg.wiped[p.identity]:
			b.lost[p.identity] = whyErased
		}
	}
	out.Uses = make([]Use, 0, len(img.Slots))
	b.slots()
	for _, p := range b.holders {
		if !reg.hasSlot(p.nsPID) {
			b.withoutSlot(p)
		}
	}
	b.finish()
	return out
}

// buildUnreadable fills in what can be said of a region that was not parsed.
// It returns true if it was.
func (r *Reader) buildUnreadable(reg *region, out *Region) (readable bool) {
	status := model.Absent
	switch unknown, isUnknown := errors.AsType[*UnknownLayoutError](reg.parseErr); {
	case reg.loadErr != nil && denied(reg.loadErr):
		status, out.Tracking = model.Denied, model.TrackDenied
		out.Reason = fmt.Sprintf("%s belongs to uid %d and only it and root may read it: run as one of them, or start ttmond", reg.path, reg.owner)
	case reg.loadErr != nil:
		out.Tracking, out.Reason = model.TrackAbsent, reg.loadErr.Error()
	case isUnknown:
		status, out.Tracking, out.Version = model.Unsupported, model.TrackUnknown, unknown.Version
		out.Reason = fmt.Sprintf("%s: %v; a newer ttmon may know it", reg.path, unknown)
	case reg.parseErr != nil:
		out.Tracking, out.Reason = model.TrackAbsent, fmt.Sprintf("%s: %v", reg.path, reg.parseErr)
	case reg.parsed.Layout.idInHeader && reg.parsed.ChipID != reg.id && reg.id >= smallID:
		status, out.Tracking, out.Version = model.Unsupported, model.TrackUnknown, reg.parsed.Layout.Version
		out.Reason = fmt.Sprintf("%s says that it is of chip %d: it was copied or renamed", reg.path, reg.parsed.ChipID)
	default:
		return true
	}
	for _, pool := range regionPools {
		out.Used[pool] = model.Missing[uint64](status, out.Reason)
	}
	return false
}

// smallID: below it an id is a logical device number, which tt-metal falls
// back to where it has no better one; then the header may differ.
const smallID = 256

func denied(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

func diagnose(img *Image) Diagnostics {
	d := Diagnostics{Refs: img.Refs, Active: img.Active, Slots: len(img.Slots), Odd: img.Odd}
	for i, pool := range regionPools {
		if pool == model.CB && !img.Layout.cbIsSum {
			continue
		}
		sum := img.Totals[i]
		for _, s := range img.Slots {
			sum -= s.Bytes[i]
		}
		d.Unaccounted[i] = int64(sum)
	}
	return d
}

// builder adds up one region.
type builder struct {
	reg     *region
	out     *Region
	holders []*process
	lost    map[identity]string // holders whose slot does not say what they hold, and why

	sum   [numPools]uint64
	known [numPools]bool                   // sum has a live process in it
	holes [numPools]*model.Reading[uint64] // a live process's figure that is missing
	gaps  []string                         // what the sums leave out, as sentences
}

const (
	noteAttached     = "attached, nothing recorded yet"
	noteUnsure       = "found by pid, name and start time: what it maps may not be looked at"
	whyErased        = "its records were erased by a process that took it for dead, or by another release"
	whyReinitialised = "a newer release initialised the region anew while it was attached: what it had recorded is lost"
)

// gap notes once that the figures are not complete, and why.
func (b *builder) gap(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(b.gaps, s) {
		b.gaps = append(b.gaps, s)
	}
}

// slots turns the judged slots into uses and ghosts.
func (b *builder) slots() {
	changing := b.reg.torn
	for _, slot := range b.reg.parsed.Slots {
		switch st := b.reg.states[slot.Index]; {
		case st == nil:
			changing = true
		case st.verdict == undecided:
			b.out.Unknown = append(b.out.Unknown, ghostOf(slot, slot.Bytes, 0))
			b.gap("there was no time to look for the process of slot %d (pid %d) among all", slot.Index, slot.PID)
		case st.verdict == dead:
			b.out.Ghosts = append(b.out.Ghosts, ghostOf(slot, slot.Bytes, 0))
		case st.verdict == unseen:
			b.out.Unknown = append(b.out.Unknown, ghostOf(slot, slot.Bytes, 0))
			if st.doubt != 0 {
				b.gap("whether process %d is the one of slot %d may not be looked at: run as root, or start ttmond", st.doubt, slot.Index)
			} else {
				b.gap("the process of slot %d (pid %d) cannot be seen from here: it is dead, or outside this container", slot.Index, slot.PID)
			}
		case st.verdict == contested:
			b.contested(st)
		default:
			b.live(st)
		}
	}
	if changing {
		b.gap("slots changed while they were read")
	}
}

// live adds the slot of one live process.
func (b *builder) live(st *slotState) {
	p := st.owners[0]
	u := Use{PID: p.pid, StartTicks: p.start, Slot: st.slot.Index, Bytes: st.bytesOf(b.reg.capacity), Updated: st.slot.Updated}
	if st.base != nil && st.base.suspected {
		u.Note = whySuspected
	} else if st.base != nil {
		u.Note = fmt.Sprintf("it was given the pid of a dead process (%q) and counts on top of what that one left; that is taken off", st.base.slot.Name)
		b.out.Ghosts = append(b.out.Ghosts, ghostOf(st.base.slot, st.base.left(st.slot), p.pid))
	} else if !st.sure {
		u.Note = noteUnsure
	}
	if why, ok := b.lost[p.identity]; ok {
		u.lose(why)
	}
	b.count(u.Bytes, p)
	b.out.Uses = append(b.out.Uses, u)
}

// contested adds the slot of several live processes. What they hold together
// is known, what each of them holds is not.
func (b *builder) contested(st *slotState) {
	why := names(st.owners) + " account in one slot: they share the region and have the same pid in their containers"
	b.count(st.bytesOf(b.reg.capacity), st.owners...)
	b.gap("%s", why)
	for _, p := range st.owners {
		u := Use{PID: p.pid, StartTicks: p.start, Slot: st.slot.Index, Updated: st.slot.Updated}
		u.lose(why)
		b.out.Uses = append(b.out.Uses, u)
	}
}

// withoutSlot adds a process that maps the region and has no slot.
func (b *builder) withoutSlot(p *process) {
	u := Use{PID: p.pid, StartTicks: p.start, Slot: -1}
	for _, pool := range regionPools {
		u.Bytes[pool] = model.Value[uint64](0)
	}
	why, lost := b.lost[p.identity]
	switch {
	case forked(p, b.holders, b.reg):
		u.Note = fmt.Sprintf("forked from process %d, nothing recorded of its own", p.ppid)
	case lost:
		u.lose(why)
	case len(b.reg.parsed.Slots) == numSlots:
		u.lose(fmt.Sprintf("all %d slots of the region are taken, %d by dead processes", numSlots, len(b.out.Ghosts)))
	case b.reg.parsed.Layout.Version == 4:
		u.lose(whyErased) // there, attaching takes a slot
	default:
		u.Note = noteAttached
	}
	b.count(u.Bytes, p)
	b.out.Uses = append(b.out.Uses, u)
}

// lose drops what a slot says about a process.
func (u *Use) lose(why string) {
	for _, pool := range regionPools {
		u.Bytes[pool] = model.Missing[uint64](model.Absent, why)
	}
	u.Note = why
}

// count adds a live process's figures to the sums.
func (b *builder) count(bytes model.PoolBytes, who ...*process) {
	for i, pool := range regionPools {
		if v, ok := bytes[pool].Get(); ok {
			b.sum[i], b.known[i] = b.sum[i]+v, true
			continue
		}
		r := bytes[pool]
		b.holes[i] = &r
		b.gap("%s is not fully in the figures: %s", names(who), r.Why)
	}
}

func (b *builder) finish() {
	for i, pool := range regionPools {
		b.out.Used[pool] = model.Value(b.sum[i])
		if b.holes[i] != nil && !b.known[i] {
			b.out.Used[pool] = *b.holes[i]
		}
	}
	slices.SortFunc(b.out.Uses, func(a, c Use) int {
		return cmp.Or(cmp.Compare(a.PID, c.PID), cmp.Compare(a.Slot, c.Slot))
	})
	if len(b.gaps) > 0 {
		b.out.Tracking = model.TrackPartial
		b.out.Reason = strings.Join(b.gaps, "; ")
	}
}

func names(ps []*process) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = strconv.Itoa(p.pid)
	}
	if len(ps) == 1 {
		return "process " + parts[0]
	}
	return "processes " + strings.Join(parts, " and ")
}
