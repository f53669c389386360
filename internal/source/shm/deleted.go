package shm

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// openDeleted opens regions whose name was removed while processes map them:
// these still account there, and a new process creates a second region for the
// same chip. The file is reached through the writer's open descriptor.
func (r *Reader) openDeleted() {
	for _, p := range r.procs {
		for _, m := range p.maps.regions {
			if m.deleted && r.regions[m.inode] == nil {
				if f := r.openVia(p, m); f != nil {
					r.addRegion(f).seen = 0 // no directory has it
				}
			}
		}
	}
}

// openVia finds the descriptor of p that is open on m and opens its file again.
func (r *Reader) openVia(p *process, m mapping) *file {
	// Pinned first: by the time it is opened for reading it is known to be a
	// regular file, whatever the descriptor has become.
	pinned, number, err := p.Pin(m.Dev, m.Ino)
	if err != nil {
		return nil
	}
	defer unix.Close(pinned)
	f := &file{
		inode: m.inode, id: m.id, fd: -1,
		path: "/proc/" + strconv.Itoa(p.PID) + "/fd/" + number,
	}
	var st unix.Stat_t
	if unix.Fstat(pinned, &st) == nil {
		f.owner, f.mode = int(st.Uid), st.Mode&0o777
	}
	f.open(pinned)
	return f
}
