package shm

import (
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
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
		if p == nil || u.StartTicks != 0 && u.StartTicks != p.start {
			p = r.learn(u.PID)
		}
		if p != nil && (u.StartTicks == 0 || u.StartTicks == p.start) {
			p.user = true
		}
	}
}

// haveUsers tells whether every user that can be known is.
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
	p, err := openProcess(r.root, pid)
	if err != nil {
		return nil
	}
	r.guard.readMaps(p, r.now)
	r.keep(p)
	return p
}

// keep makes a process a known one, in the place of a former one of that pid.
func (r *Reader) keep(p *process) {
	if old := r.procs[p.pid]; old != nil {
		r.drop(old)
	}
	if r.ours {
		p.pin()
	}
	r.procs[p.pid] = p
	r.touch(p)
	r.changed, r.watch = true, nil
}

// drop forgets a process; what it mapped must be judged again.
func (r *Reader) drop(p *process) {
	r.touch(p)
	p.close()
	p.gone = true
	delete(r.procs, p.pid)
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
	r.guard.readMaps(p, r.now)
	if slices.Equal(old.regions, p.maps.regions) && old.lib == p.maps.lib && (oldErr == nil) == (p.mapsErr == nil) {
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
		if r.watch[i].Revents != 0 || p.pidfd < 0 && !p.alive() {
			defer r.drop(p)
		}
	}
}

// checkMaps looks again at what processes map, now and then.
func (r *Reader) checkMaps() {
	for _, p := range r.procs {
		if r.now.Sub(p.mapsAt) >= mapsAge {
			if p.refreshName() {
				r.changed = true
			}
			r.fresh(p)
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
}

// owns tells whether a slot is believed to be p's. It may be without a mapping
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

// seesAll tells whether no process of the host is hidden from us: neither by
// hidepid nor because we are in a pid namespace below the host's.
func seesAll(root hostfs.Root) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(root.Path("/proc"), &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return err == nil // a recorded tree shows all there is
	}
	if !root.Exists("/proc/1") { // every namespace has one: it is hidden
		return false
	}
	return pidNamespace(root, "self") == hostNamespace || pidNamespace(root, "1") == hostNamespace
}

// ownPIDs tells whether the numbers in the host's /proc are those of our own
// pid namespace: our entry there has our number, and no other one below it.
func ownPIDs(root hostfs.Root) bool {
	self, err := root.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return false
	}
	b, err := root.Read("/proc/self/status", 16<<10)
	if err != nil {
		return false
	}
	nsPID, _ := parseStatus(b, 0)
	return nsPID == os.Getpid()
}

// hostNamespace is the inode that the kernel gives the first pid namespace.
const hostNamespace = 0xEFFFFFFC

func pidNamespace(root hostfs.Root, pid string) uint64 {
	link, err := root.Readlink("/proc/" + pid + "/ns/pid")
	if err != nil {
		return 0
	}
	return parseNamespace(link)
}

// parseNamespace takes the inode out of "pid:[4026531836]".
func parseNamespace(link string) uint64 {
	const prefix, suffix = "pid:[", "]"
	if len(link) <= len(prefix)+len(suffix) || link[:len(prefix)] != prefix {
		return 0
	}
	n, err := strconv.ParseUint(link[len(prefix):len(link)-len(suffix)], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
