package shm

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// mapsAge is how long what a process maps is believed without a sign of
// change. Attaching and detaching leave signs; exec and the end of a forked
// child do not.
const mapsAge = 5 * time.Second

// noteUsers takes over the list of device users.
func (r *Reader) noteUsers(users []User) {
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
			p = r.learn(u.PID)
		}
		if p != nil && (u.StartTicks == 0 || u.StartTicks == p.StartTicks) {
			p.user = true
		}
	}
}

// haveUsers reports whether every user that can be known is.
func (r *Reader) haveUsers() bool {
	for _, u := range r.users {
		if p := r.procs[u.PID]; p == nil || !p.user {
			return false
		}
	}
	return true
}

// learn adds a process to the known ones, with what it maps. It returns nil
// if there is no such process any more.
func (r *Reader) learn(pid int) *process {
	p, err := r.open(pid)
	if err != nil {
		return nil
	}
	r.readMaps(p)
	r.keep(p)
	return p
}

// keep makes a process a known one, in the place of a former one of that pid.
func (r *Reader) keep(p *process) {
	if old := r.procs[p.PID]; old != nil {
		r.drop(old)
	}
	r.processes.Hold(p.Process)
	if r.ours {
		if fd, err := p.PIDFD(); err == nil {
			p.pidfd = fd
		}
	}
	r.procs[p.PID] = p
	r.touch(p)
	r.changed, r.watch = true, nil
}

// drop forgets a process; what it mapped must be judged again.
func (r *Reader) drop(p *process) {
	r.touch(p)
	r.processes.Release(p.Process)
	p.closePIDFD()
	p.gone = true
	delete(r.procs, p.PID)
	r.changed, r.watch = true, nil
}

// touch marks the regions that a process maps as to be judged again.
func (r *Reader) touch(p *process) {
	for _, m := range p.maps.regions {
		if reg := r.regions[m.inode]; reg != nil {
			reg.dirty = true
		}
	}
}

// fresh makes sure that what p maps was read in this sweep.
func (r *Reader) fresh(p *process) {
	if !p.mapsAt.Equal(r.now) {
		r.reread(p)
	}
}

// reread reads what p maps.
func (r *Reader) reread(p *process) {
	old, oldErr := p.maps, p.mapsErr
	r.readMaps(p)
	if slices.Equal(old.regions, p.maps.regions) && old.lib == p.maps.lib && old.drives == p.maps.drives && (oldErr == nil) == (p.mapsErr == nil) {
		return
	}
	r.changed = true
	now := p.maps
	p.maps = old
	r.touch(p)
	p.maps = now
	r.touch(p)
}

// dropDead forgets processes that ended. Where pids are our own, one poll of
// their pidfds tells; elsewhere each has to be asked.
func (r *Reader) dropDead() {
	if r.watch == nil {
		r.watch, r.watched = r.watch[:0], r.watched[:0]
		for _, p := range r.procs {
			r.watch = append(r.watch, unix.PollFd{Fd: int32(p.pidfd), Events: unix.POLLIN})
			r.watched = append(r.watched, p)
		}
	}
	if _, err := unix.Poll(r.watch, 0); err != nil {
		return // interrupted: the next sweep will tell
	}
	for i, p := range r.watched {
		if r.watch[i].Revents != 0 || p.pidfd < 0 && !p.Alive() {
			defer r.drop(p)
		}
	}
}

// mapsAge is how long what p maps is believed. A user of a device that does not
// drive it yet may begin to at any moment, and hold memory then: it is read
// again as soon as that costs no more than a thousandth of the time.
func (p *process) mapsAge() time.Duration {
	if p.user && p.mapsErr == nil && p.maps.lib.path == "" && !p.maps.drives {
		return min(mapsAge, 1000*p.mapsFor)
	}
	return mapsAge
}

// checkMaps looks again at what processes map, now and then.
func (r *Reader) checkMaps() {
	for _, p := range r.procs {
		if r.now.Sub(p.mapsAt) >= p.mapsAge() {
			_ = r.processes.Refresh(p.Process) // an end shows itself otherwise
			r.fresh(p)
		}
		if p.changed() {
			r.changed = true
		}
	}
}

// forget closes processes that are of no interest any more.
func (r *Reader) forget() {
	for _, p := range r.procs {
		if !p.user && len(p.maps.regions) == 0 && !r.owns(p) {
			r.drop(p)
		}
	}
	r.releases.forget(r.procs)
}

// owns reports whether a slot is believed to be p's. It may be without a mapping
// seen, where that may not be looked at.
func (r *Reader) owns(p *process) bool {
	for _, reg := range r.regions {
		for _, st := range reg.states {
			if st != nil && slices.Contains(st.owners, p) {
				return true
			}
		}
	}
	return false
}
