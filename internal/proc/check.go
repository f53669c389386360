package proc

import (
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Holding is an answer of Check.
type Holding int

// Whether a process holds a device node.
const (
	HoldsNot   Holding = iota
	Holds              // by at least one descriptor
	HoldsByMap         // all descriptors closed, but the device is still mapped
	MayNotLook         // the process is there; its descriptors are not for us to see
	NoProcess          // it has ended, or is a zombie
)

// Check tells whether a process holds the node of a device now, and by which
// descriptors. It tells exited openers from those who inherited from them.
func (r *Reader) Check(pid, device int) (Holding, []int) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return MayNotLook, nil
	}
	defer proc.Close()
	r.begin()
	r.descriptors.begin(r.root)
	return r.check(proc, pid, device)
}

func (r *Reader) check(proc hostfs.Dir, pid, device int) (Holding, []int) {
	now := time.Now()
	for _, m := range []mode{ifChanged, always} {
		t, err := r.descriptors.look(proc, pid, now, m)
		switch {
		case noProcess(err) && r.concealed(pid) != "":
			return MayNotLook, nil
		case noProcess(err):
			return NoProcess, nil
		case err != nil, t.denied:
			return MayNotLook, nil
		}
		if fds := t.of(device); len(fds) > 0 {
			return Holds, fds
		}
		// Unchanged in size is not proof enough for a no.
	}
	return r.checkMaps(pid, device), nil
}

// of returns the descriptors of one device.
func (t *descriptorTable) of(device int) (fds []int) {
	for _, h := range t.holds {
		if h.device == device {
			fds = append(fds, h.fd)
		}
	}
	return fds
}

// checkMaps looks for a device that is mapped while no descriptor of it is
// open: the mapping alone keeps it open for the driver.
func (r *Reader) checkMaps(pid, device int) Holding {
	var mapped bool
	_, err := r.mappings(pid, func(path []byte) bool {
		n, ok := deviceInLink(path)
		mapped = mapped || ok && n == device
		return false
	})
	switch {
	case mapped:
		return HoldsByMap
	case noProcess(err):
		return NoProcess
	case err != nil:
		return MayNotLook
	default:
		if s, err := r.statOf(pid); err != nil || s.Gone() {
			return NoProcess
		}
		return HoldsNot
	}
}

// statOf reads the stat file of a process.
func (r *Reader) statOf(pid int) (Stat, error) {
	dir, err := r.open(pid)
	if err != nil {
		return Stat{}, err
	}
	defer dir.Close()
	s, _, err := r.readStat(dir)
	return s, err
}
