package shm

import (
	"slices"
	"time"
)

// ghostAge is how long the death of a slot's owner is believed without looking
// again, while the slot does not change.
const ghostAge = 30 * time.Second

// members is the part of a region that attaching and detaching change.
type members struct {
	version, refs, active uint32
	pids                  [numSlots]int32
}

func membersOf(img *Image) (m members) {
	m.version, m.refs, m.active = img.Layout.Version, img.Refs, img.Active
	for _, s := range img.Slots {
		m.pids[s.Index] = s.PID
	}
	return m
}

// judgeAll finds out who is behind the slots of all regions that changed.
func (r *Reader) judgeAll() {
	// A process that dies or detaches while we look makes us look again;
	// after a few rounds the next sweep will do.
	for range 1 + retries {
		if !r.judgeRound() {
			break
		}
	}
	for _, reg := range r.regions {
		if reg.dirty || reg.result == nil {
			reg.result = r.build(reg)
			reg.dirty = reg.restless
			r.stale = true
		}
	}
}

// judgeRound judges the changed regions once. It returns true if a region
// changed under it, so that its verdicts on dead owners cannot stand.
func (r *Reader) judgeRound() (again bool) {
	var todo []*region
	for _, reg := range r.regions {
		reg.restless = false
		switch {
		case reg.parsed == nil:
			clear(reg.states[:])
		case reg.dirty || r.due(reg):
			reg.dirty = true
			todo = append(todo, reg)
		}
	}
	var owners search
	for _, reg := range todo {
		reg.unsearched = false
		r.lookAtMembers(reg)
		r.matchSlots(reg)
		owners.slots(reg)
	}
	r.searchFor(&owners)
	var holders search
	for _, reg := range todo {
		r.searchHolders(reg, &holders)
	}
	r.searchFor(&holders)
	for _, reg := range todo {
		if reg.restless = r.conclude(reg); reg.restless {
			again = true
		}
	}
	return again
}

// due reports whether a region must be judged again although it did not change:
// a search was put off, or a verdict on the dead has become old.
func (r *Reader) due(reg *region) bool {
	if !reg.searched && r.now.Sub(r.lastSearch) >= searchPause {
		return true
	}
	return !reg.dueAt.IsZero() && !r.now.Before(reg.dueAt)
}

// lookAtMembers reads anew what processes map that may have attached or
// detached since the region was last judged. Owners of unchanged slots are
// not among them: who detaches gives up the slot.
func (r *Reader) lookAtMembers(reg *region) {
	m := membersOf(reg.parsed)
	reg.moved = m != reg.members
	if !reg.moved {
		return
	}
	reg.members, reg.searched = m, false
	for _, p := range r.procs {
		_, mapped := p.maps.find(reg.inode)
		if (p.user || mapped) && !slices.Contains(m.pids[:], int32(p.InnerPID)) {
			r.fresh(p)
		}
	}
}

// matchSlots gives each slot its owner among the known processes, or the one
// that the slot's own number leads to: outside containers it is the host's.
func (r *Reader) matchSlots(reg *region) {
	for _, slot := range reg.parsed.Slots {
		old := reg.states[slot.Index]
		if r.stands(reg, old, slot) {
			continue
		}
		if old != nil && old.verdict == undecided {
			old = old.before
		}
		next := &slotState{slot: slot, at: r.now, before: old}
		r.findOwners(next, reg)
		if len(next.owners) == 0 && r.procs[int(slot.PID)] == nil {
			r.consider(int(slot.PID), reg, slot)
			r.findOwners(next, reg)
		}
		reg.states[slot.Index] = next
	}
}

// stands reports whether an earlier verdict still holds for a slot, and if so
// takes over the slot's new figures.
func (r *Reader) stands(reg *region, old *slotState, slot Slot) bool {
	if old == nil || old.slot.PID != slot.PID || old.slot.Name != slot.Name {
		return false
	}
	switch old.verdict {
	case live, contested:
		for _, p := range old.owners {
			if _, mapped := p.maps.find(reg.inode); p.gone || old.sure && !mapped {
				return false
			}
		}
		old.slot = slot
		return true
	case dead, unseen:
		// Somebody new may have the dead one's pid, and not have written yet.
		return old.slot == slot && r.now.Sub(old.at) < ghostAge && !(reg.moved && old.at.Before(r.now)) && !r.hasHeir(reg, slot)
	}
	return false
}

// hasHeir reports whether a known process would find the slot by its pid.
func (r *Reader) hasHeir(reg *region, slot Slot) bool {
	for _, p := range r.procs {
		if p.InnerPID == int(slot.PID) && mapsRegion(p, reg) {
			return true
		}
	}
	return false
}

// findOwners finds the known processes behind a slot. Where what they map may
// not be looked at, pid, name and start time have to do.
func (r *Reader) findOwners(st *slotState, reg *region) {
	st.owners, st.sure, st.doubt = nil, true, 0
	for _, p := range r.procs {
		if p.InnerPID != int(st.slot.PID) {
			continue
		}
		m, mapped := p.maps.find(reg.inode)
		if !mapped || st.before == nil {
			r.fresh(p)
			m, mapped = p.maps.find(reg.inode)
		}
		switch {
		case mapped && m.writable:
			st.owners = append(st.owners, p)
		case p.mapsErr == nil || !r.oldEnough(p, st.slot) || p.isInit():
		case p.Name == st.slot.Name:
			st.owners, st.sure = append(st.owners, p), false
		default:
			st.doubt = p.PID // programs rename themselves
		}
	}
	slices.SortFunc(st.owners, func(a, b *process) int { return a.PID - b.PID })
}

// oldEnough reports whether a process can have written what the slot holds.
func (r *Reader) oldEnough(p *process, slot Slot) bool {
	return !slot.Updated.Before(p.startTime(r.boot))
}

// consider looks at a process that may be behind a slot, and keeps it if it is.
func (r *Reader) consider(pid int, reg *region, slot Slot) {
	p, err := r.open(pid)
	if err != nil {
		return
	}
	if p.InnerPID == int(slot.PID) {
		r.readMaps(p)
		if _, mapped := p.maps.find(reg.inode); mapped || p.mapsErr != nil && r.oldEnough(p, slot) {
			r.keep(p)
			return
		}
	}
	r.processes.Discard(p.Process)
}

// conclude turns owners into verdicts. A verdict that somebody is dead is
// checked against the region as it is after the search: a process that
// detached in between has cleared its slot. It returns true if one has.
func (r *Reader) conclude(reg *region) (again bool) {
	doubt := false
	reg.dueAt = time.Time{}
	var occupied [numSlots]bool
	for _, slot := range reg.parsed.Slots {
		occupied[slot.Index] = true
		st := reg.states[slot.Index]
		if st.verdict == undecided && reg.unsearched && len(st.owners) == 0 {
			reg.dueAt = r.now // and is then looked for again
			continue
		}
		if st.verdict == undecided {
			st.verdict = r.verdictOn(st)
			if old := st.before; old != nil && old.slot.PID != slot.PID {
				r.noteWiped(reg, old) // its slot has gone to somebody else
			}
			r.inheritFrom(st, reg)
			doubt = doubt || !st.alive()
		}
		if due := st.at.Add(ghostAge); !st.alive() && (reg.dueAt.IsZero() || due.Before(reg.dueAt)) {
			reg.dueAt = due
		}
	}
	for i, st := range reg.states {
		if st != nil && !occupied[i] {
			reg.states[i] = nil
			r.noteWiped(reg, st)
		}
	}
	for id := range reg.wiped {
		if p := r.procs[id.PID]; p == nil || p.ProcessID != id || !mapsRegion(p, reg) {
			delete(reg.wiped, id)
		}
	}
	if reg.version != reg.parsed.Layout.Version {
		reg.version, r.changed = reg.parsed.Layout.Version, true
	}
	if !doubt {
		return false
	}
	again, reg.loadErr = reg.load()
	return again
}

func (r *Reader) verdictOn(st *slotState) verdict {
	switch {
	case len(st.owners) == 1:
		return live
	case len(st.owners) > 1:
		return contested
	case r.complete && st.doubt == 0:
		return dead
	}
	return unseen
}

// noteWiped remembers a process that lost its slot while it still maps the
// region: a writer of another release initialised the region under it, or
// (layout 4) one in another pid namespace took it for dead. What it holds is
// not known from then on.
func (r *Reader) noteWiped(reg *region, st *slotState) {
	can := reg.parsed.Layout.Version == 4 || reg.parsed.Layout.Version != reg.version
	if st.verdict != live || !can {
		return
	}
	p := st.owners[0]
	if p.gone {
		return
	}
	r.reread(p)
	if mapsRegion(p, reg) {
		reg.wiped[p.ProcessID] = true
	}
}

func mapsRegion(p *process, reg *region) bool {
	m, ok := p.maps.find(reg.inode)
	return ok && m.writable
}

// holders are the known processes that map a region as writers do, by pid.
func (r *Reader) holders(reg *region) []*process {
	var hs []*process
	for _, p := range r.procs {
		if mapsRegion(p, reg) {
			hs = append(hs, p)
		}
	}
	slices.SortFunc(hs, func(a, b *process) int { return a.PID - b.PID })
	return hs
}

// inheritFrom works out what of a new owner's slot is a dead one's.
func (r *Reader) inheritFrom(st *slotState, reg *region) {
	old := st.before
	st.before = nil
	if st.verdict != live {
		return
	}
	p := st.owners[0]
	if old != nil && len(old.owners) == 1 && old.owners[0].ProcessID == p.ProcessID {
		if old.slot.PID == st.slot.PID {
			st.base = old.base
		}
		return
	}
	if known, ok := r.handedOn[slotOwner{reg.inode, st.slot.Index, p.ProcessID}]; ok && old == nil {
		st.base = known
		return
	}
	base := inherit(old, st.slot, p.startTime(r.boot), r.leaked(reg))
	// A slot that was free when the region was last judged was claimed anew.
	if base == nil && old == nil && reg.version == 0 && r.mayBeAdopted(st, p, reg) {
		base = &baseline{slot: st.slot, suspected: true}
	}
	if base != nil && !base.empty() {
		st.base = base
	}
}

// mayBeAdopted reports whether a slot that is seen for the first time may have
// been a dead process's before, and hold its bytes. Up to layout 3 the count of
// attachments reports whether somebody died attached of whom no slot is left.
// Layout 4 counts slots: there the number of a container's process, which is
// used again and again, under a name that is not its own has to do.
func (r *Reader) mayBeAdopted(st *slotState, p *process, reg *region) bool {
	if reg.parsed.Layout.cbIsSum {
		return p.InnerPID != p.PID && st.slot.Name != "" && st.slot.Name != p.Name
	}
	missing := int(int32(reg.parsed.Refs)) - r.providers(reg) // below zero once it wrapped
	for _, slot := range reg.parsed.Slots {
		if other := reg.states[slot.Index]; other != nil && len(other.owners) == 0 {
			missing--
		}
	}
	return missing > 0
}

// leaked reports whether somebody may have died attached to the region. Up to
// layout 3 the writer counts attachments, and the dead stay counted; layout 4
// counts slots, and an adopted slot hides its dead.
func (r *Reader) leaked(reg *region) bool {
	return reg.parsed.Layout.cbIsSum || int64(reg.parsed.Refs) > int64(r.providers(reg))
}

// providers counts the known processes that attached to a region themselves.
func (r *Reader) providers(reg *region) (n int) {
	holders := r.holders(reg)
	for _, p := range holders {
		if !forked(p, holders, reg) {
			n++
		}
	}
	return n
}

// forked reports whether p only inherited the mapping of a parent that holds it.
func forked(p *process, holders []*process, reg *region) bool {
	if reg.hasSlot(p.InnerPID) {
		return false
	}
	return slices.ContainsFunc(holders, func(h *process) bool { return h.PID == p.PPID })
}

func (reg *region) hasSlot(innerPID int) bool {
	return slices.ContainsFunc(reg.parsed.Slots, func(s Slot) bool { return int(s.PID) == innerPID })
}
