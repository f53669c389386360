package shm

import (
	"slices"
	"time"
)

// deadRecheck is how often it is checked again that a slot's owner is dead,
// while the slot does not change.
const deadRecheck = 30 * time.Second

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

// judgeAll finds the owners of the slots of all regions that changed.
func (r *Reader) judgeAll() {
	// A process that exits or detaches meanwhile makes another round necessary;
	// after a few rounds that is left to the next sweep.
	for _, reg := range r.regions {
		if reg.figures && !reg.dirty && !r.due(reg) {
			reg.dirty = !r.updateResult(reg)
		}
	}
	for range 1 + retries {
		if !r.judgeRound() {
			break
		}
	}
	for _, reg := range r.regions {
		if reg.dirty || reg.result == nil {
			reg.result = r.build(reg)
			reg.dirty = reg.changing
			r.stale = true
		}
		reg.figures = false
	}
}

// judgeRound judges the changed regions once. It returns true if a region
// changed under it, so that its verdicts on dead owners cannot stand.
func (r *Reader) judgeRound() (again bool) {
	var todo []*region
	for _, reg := range r.regions {
		reg.changing = false
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
		r.refreshMembers(reg)
		r.matchSlots(reg)
		owners.addSlots(reg)
	}
	r.runSearch(&owners)
	var holders search
	for _, reg := range todo {
		r.addHolderSearch(reg, &holders)
	}
	r.runSearch(&holders)
	for _, reg := range todo {
		if reg.changing = r.setVerdicts(reg); reg.changing {
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

// refreshMembers reads the mappings again of processes that may have attached
// or detached since the region was last judged. Owners of unchanged slots are
// not among them: detaching releases the slot.
func (r *Reader) refreshMembers(reg *region) {
	m := membersOf(reg.parsed)
	reg.membersChanged = m != reg.members
	if !reg.membersChanged {
		return
	}
	reg.members, reg.searched = m, false
	for _, p := range r.procs {
		_, mapped := p.maps.find(reg.inode)
		if (p.user || mapped) && !slices.Contains(m.pids[:], int32(p.InnerPID)) {
			r.ensureMaps(p)
		}
	}
}

// matchSlots finds the owner of each slot among the known processes, or by the
// slot's pid: outside containers it is the host's.
func (r *Reader) matchSlots(reg *region) {
	for _, slot := range reg.parsed.Slots {
		old := reg.states[slot.Index]
		if r.verdictHolds(reg, old, slot) {
			continue
		}
		if old != nil && old.verdict == undecided {
			old = old.before
		}
		next := &slotState{slot: slot, at: r.now, before: old}
		r.findOwners(next, reg)
		if len(next.owners) == 0 && r.procs[int(slot.PID)] == nil {
			r.inspectOwner(int(slot.PID), reg, slot)
			r.findOwners(next, reg)
		}
		reg.states[slot.Index] = next
	}
}

// verdictHolds reports whether an earlier verdict still holds for a slot, and
// if so copies the slot's new figures.
func (r *Reader) verdictHolds(reg *region, old *slotState, slot Slot) bool {
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
		// A new process may have the dead one's pid, and not have written yet.
		return old.slot == slot && r.now.Sub(old.at) < deadRecheck && !(reg.membersChanged && old.at.Before(r.now)) && !r.pidReused(reg, slot)
	}
	return false
}

// pidReused reports whether a known process would find the slot by its pid.
func (r *Reader) pidReused(reg *region, slot Slot) bool {
	for _, p := range r.procs {
		if p.InnerPID == int(slot.PID) && mapsRegion(p, reg) {
			return true
		}
	}
	return false
}

// findOwners finds the known processes that own a slot. Where their mappings
// may not be read, pid, name and start time must match.
func (r *Reader) findOwners(st *slotState, reg *region) {
	st.owners, st.sure, st.doubt = nil, true, 0
	for _, p := range r.procs {
		if p.InnerPID != int(st.slot.PID) {
			continue
		}
		m, mapped := p.maps.find(reg.inode)
		if !mapped || st.before == nil {
			r.ensureMaps(p)
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

// inspectOwner reads a process that may own a slot, and keeps it if it does.
func (r *Reader) inspectOwner(pid int, reg *region, slot Slot) {
	p, err := r.open(pid)
	if err != nil {
		return
	}
	if p.InnerPID == int(slot.PID) {
		r.readMaps(p)
		if _, mapped := p.maps.find(reg.inode); mapped || p.mapsErr != nil && r.oldEnough(p, slot) {
			r.holdProcess(p)
			return
		}
	}
	r.processes.Discard(p.Process)
}

// setVerdicts turns owners into verdicts. A verdict that an owner is dead is
// checked against the region as it is after the search: a process that detached
// in between has cleared its slot. It returns true if one has.
func (r *Reader) setVerdicts(reg *region) (again bool) {
	doubt := false
	reg.dueAt = time.Time{}
	var occupied [numSlots]bool
	for _, slot := range reg.parsed.Slots {
		occupied[slot.Index] = true
		st := reg.states[slot.Index]
		if st.verdict == undecided && reg.unsearched && len(st.owners) == 0 {
			reg.dueAt = r.now // and is then searched for again
			continue
		}
		if st.verdict == undecided {
			st.verdict = r.decide(st)
			if old := st.before; old != nil && old.slot.PID != slot.PID {
				r.markWiped(reg, old) // another process has its slot now
			}
			r.setBaseline(st, reg)
			doubt = doubt || !st.alive()
		}
		if due := st.at.Add(deadRecheck); !st.alive() && (reg.dueAt.IsZero() || due.Before(reg.dueAt)) {
			reg.dueAt = due
		}
	}
	for i, st := range reg.states {
		if st != nil && !occupied[i] {
			reg.states[i] = nil
			r.markWiped(reg, st)
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
	changed, err := reg.load(r.buffer)
	reg.loadErr = err
	return changed != unchanged
}

func (r *Reader) decide(st *slotState) verdict {
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

// markWiped records a process that lost its slot while it still maps the
// region: a writer of another release initialised the region again, or (layout
// 4) one in another pid namespace concluded that it was dead. What it holds is
// unknown from then on.
func (r *Reader) markWiped(reg *region, st *slotState) {
	can := reg.parsed.Layout.Version == 4 || reg.parsed.Layout.Version != reg.version
	if st.verdict != live || !can {
		return
	}
	p := st.owners[0]
	if p.gone {
		return
	}
	r.refreshMaps(p)
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

// setBaseline sets which bytes of a new owner's slot are a dead one's.
func (r *Reader) setBaseline(st *slotState, reg *region) {
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
	if known, ok := r.restored[slotOwner{reg.inode, st.slot.Index, p.ProcessID}]; ok && old == nil {
		st.base = known
		return
	}
	base := findBaseline(old, st.slot, p.startTime(r.boot), r.leaked(reg))
	// A slot that was free when the region was last judged is a new claim.
	if base == nil && old == nil && reg.version == 0 && r.mayBeAdopted(st, p, reg) {
		base = &baseline{slot: st.slot, suspected: true}
	}
	if base != nil && !base.empty() {
		st.base = base
	}
}

// mayBeAdopted reports whether a slot that is seen for the first time may have
// been a dead process's before, and hold its bytes. Up to layout 3 the count of
// attachments shows whether a process died attached and has no slot left.
// Layout 4 counts slots: there the pid of a container's process, which is often
// reused, under a name that is not its own is taken as a sign.
func (r *Reader) mayBeAdopted(st *slotState, p *process, reg *region) bool {
	if reg.parsed.Layout.cbIsSum {
		return p.InnerPID != p.PID && st.slot.Name != "" && st.slot.Name != p.Name
	}
	missing := int(int32(reg.parsed.Refs)) - r.countAttached(reg) // below zero once it wrapped
	for _, slot := range reg.parsed.Slots {
		if other := reg.states[slot.Index]; other != nil && len(other.owners) == 0 {
			missing--
		}
	}
	return missing > 0
}

// leaked reports whether a process may have died attached to the region. Up to
// layout 3 the writer counts attachments, and the dead stay counted; layout 4
// counts slots, and an adopted slot hides its dead.
func (r *Reader) leaked(reg *region) bool {
	return reg.parsed.Layout.cbIsSum || int64(reg.parsed.Refs) > int64(r.countAttached(reg))
}

// countAttached counts the known processes that attached to a region
// themselves.
func (r *Reader) countAttached(reg *region) (n int) {
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
