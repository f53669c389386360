package proc

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// holding is an answer of check.
type holding int

// Whether a process holds a device node.
const (
	notHeld       holding = iota
	held                  // by at least one descriptor
	heldByMap             // all descriptors closed, but the device is still mapped
	mayNotLook            // the process is there; its descriptors are not for us to see
	noSuchProcess         // it has ended, or is a zombie
)

// HoldsNot tells whether it is certain that a process does not hold a device,
// neither opened by itself nor inherited.
func (r *Reader) HoldsNot(pid, device int) bool {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	r.descriptors.begin(r.root)
	how, _ := r.check(proc, pid, device)
	return how == notHeld
}

// MayHold tells whether a process has any device node open now, or may have:
// it may not be looked at.
func (r *Reader) MayHold(p *Process) bool {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	r.descriptors.begin(r.root)
	t, err := r.descriptors.look(proc, p.PID, time.Now(), always)
	return err != nil || t.denied || len(t.holds) > 0
}

// check tells whether a process holds the node of a device now, and by which
// descriptors. It tells exited openers from those who inherited from them.
func (r *Reader) check(proc hostfs.Dir, pid, device int) (holding, []int) {
	now := time.Now()
	for _, m := range []mode{ifChanged, always} {
		t, err := r.descriptors.look(proc, pid, now, m)
		switch {
		case noProcess(err) && r.concealed(pid) != "":
			return mayNotLook, nil
		case noProcess(err):
			return noSuchProcess, nil
		case err != nil, t.denied:
			return mayNotLook, nil
		}
		if fds := t.of(device); len(fds) > 0 {
			return held, fds
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
func (r *Reader) checkMaps(pid, device int) holding {
	p, err := r.Process(pid)
	var maps []Mapping
	if err == nil {
		maps, err = r.Maps(p)
	}
	switch {
	case slices.ContainsFunc(maps, func(m Mapping) bool {
		n, ok := deviceInLink([]byte(m.Path))
		return ok && n == device
	}):
		return heldByMap
	case noProcess(err):
		return noSuchProcess
	case err != nil:
		return mayNotLook
	case !p.Alive():
		return noSuchProcess
	default:
		return notHeld
	}
}
