package shm

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// mapsAge is how long the mappings of a process are cached without a sign of
// change. Attaching and detaching leave signs; exec and the exit of a forked
// child do not.
const mapsAge = 5 * time.Second

// setUsers replaces the list of device users.
func (r *Reader) setUsers(users []User) {
	if slices.Equal(users, r.users) && r.haveUsers() {
		return
	}
	r.users = slices.Clone(users)
	r.changed = true
	for _, p := range r.procs {
		p.user = false
	}
	for _, u := range users {
		p := r.procs[u.PID]
		if p == nil || u.StartTicks != 0 && u.StartTicks != p.StartTicks {
			p = r.addProcess(u.PID)
		}
		if p != nil && (u.StartTicks == 0 || u.StartTicks == p.StartTicks) {
			p.user = true
		}
	}
}

// haveUsers reports whether all users are known processes.
func (r *Reader) haveUsers() bool {
	for _, u := range r.users {
		if p := r.procs[u.PID]; p == nil || !p.user {
			return false
		}
	}
	return true
}

// addProcess adds a process to the known ones, with its mappings. It returns
// nil if the process has exited.
func (r *Reader) addProcess(pid int) *process {
	p, err := r.open(pid)
	if err != nil {
		return nil
	}
	r.readMaps(p)
	r.holdProcess(p)
	return p
}

// holdProcess makes a process a known one, and replaces an earlier one of that
// pid.
func (r *Reader) holdProcess(p *process) {
	if old := r.procs[p.PID]; old != nil {
		r.dropProcess(old)
	}
	r.processes.Hold(p.Process)
	if r.ownPIDs {
		if fd, err := p.PIDFD(); err == nil {
			p.pidfd = fd
		}
	}
	r.procs[p.PID] = p
	r.markDirty(p)
	r.changed, r.watch = true, nil
}

// dropProcess drops a process; the regions it mapped must be judged again.
func (r *Reader) dropProcess(p *process) {
	r.markDirty(p)
	r.processes.Release(p.Process)
	p.closePIDFD()
	p.gone = true
	delete(r.procs, p.PID)
	r.changed, r.watch = true, nil
}

// markDirty marks the regions that a process maps to be judged again. Where its
// mappings may not be read, these are the ones in which it owns a slot.
func (r *Reader) markDirty(p *process) {
	for _, reg := range r.regions {
		if p.mapsErr != nil && reg.ownedBy(p) {
			reg.dirty = true
		}
	}
	for _, m := range p.maps.regions {
		if reg := r.regions[m.inode]; reg != nil {
			reg.dirty = true
		}
	}
}

// ensureMaps makes sure that the mappings of p were read in this sweep.
func (r *Reader) ensureMaps(p *process) {
	if !p.mapsAt.Equal(r.now) {
		r.refreshMaps(p)
	}
}

// refreshMaps reads the mappings of p again.
func (r *Reader) refreshMaps(p *process) {
	old, oldErr := p.maps, p.mapsErr
	r.readMaps(p)
	if slices.Equal(old.regions, p.maps.regions) && old.lib == p.maps.lib && old.drives == p.maps.drives && (oldErr == nil) == (p.mapsErr == nil) {
		return
	}
	r.changed = true
	now := p.maps
	p.maps = old
	r.markDirty(p)
	p.maps = now
	r.markDirty(p)
}

// dropExited drops processes that have exited. Where pids are our own, one poll
// of their pidfds finds them; elsewhere each must be checked.
func (r *Reader) dropExited() {
	if r.watch == nil {
		r.watch, r.watched = r.watch[:0], r.watched[:0]
		for _, p := range r.procs {
			r.watch = append(r.watch, unix.PollFd{Fd: int32(p.pidfd), Events: unix.POLLIN})
			r.watched = append(r.watched, p)
		}
	}
	if _, err := unix.Poll(r.watch, 0); err != nil {
		return // interrupted: left to the next sweep
	}
	for i, p := range r.watched {
		if r.watch[i].Revents != 0 || p.pidfd < 0 && !p.Alive() {
			defer r.dropProcess(p)
		}
	}
}

// mapsAge is how long the mappings of p are cached. A user of a device that
// does not drive it yet may start to at any moment, and hold memory then: its
// mappings are read again when its address space has another size, as soon as
// that costs no more than a thousandth of the time.
func (p *process) mapsAge() time.Duration {
	if p.mayStart() && p.Size() != p.mapsSize {
		return min(mapsAge, 1000*p.mapsFor)
	}
	return mapsAge
}

// mayStart reports whether p has a device open that it does not drive yet.
func (p *process) mayStart() bool {
	return p.user && p.mapsErr == nil && p.maps.lib.path == "" && !p.maps.drives
}

// refreshOldMaps reads the mappings of processes again when they are too old.
func (r *Reader) refreshOldMaps() {
	for _, p := range r.procs {
		if p.mayStart() {
			_ = r.processes.Refresh(p.Process)
		}
		if r.now.Sub(p.mapsAt) >= p.mapsAge() {
			_ = r.processes.Refresh(p.Process) // an exit is noticed elsewhere
			r.ensureMaps(p)
		}
		if p.changed() {
			r.changed = true
		}
	}
}

// dropUnneeded drops processes that are no longer needed.
func (r *Reader) dropUnneeded() {
	for _, p := range r.procs {
		if !p.user && len(p.maps.regions) == 0 && !r.owns(p) {
			r.dropProcess(p)
		}
	}
	r.releases.dropUnused(r.procs)
}

// owns reports whether p is an owner of a slot, by its mapping or, where
// mappings may not be read, by pid and name.
func (r *Reader) owns(p *process) bool {
	for _, reg := range r.regions {
		if reg.ownedBy(p) {
			return true
		}
	}
	return false
}

// ownedBy reports whether p is an owner of a slot of the region.
func (reg *region) ownedBy(p *process) bool {
	return slices.ContainsFunc(reg.states[:], func(st *slotState) bool { return st != nil && slices.Contains(st.owners, p) })
}
