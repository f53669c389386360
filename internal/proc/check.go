package proc

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// holding is a result of checkHold.
type holding int

// Whether a process holds a device node.
const (
	notHeld       holding = iota
	held                  // by at least one descriptor
	heldByMap             // all descriptors closed, but the device is still mapped
	holdUnknown           // the process runs, but we may not read its descriptors
	noSuchProcess         // it has exited, or is a zombie
)

// Hold is whether a process holds a device, opened or inherited.
type Hold int

const (
	Holds Hold = iota
	HoldsNot
	HoldUnknown   // its descriptors cannot be read
	HeldUntilExit // perhaps: it has exited
)

// HasOpen reports whether a process holds a device.
func (r *Reader) HasOpen(pid, device int) Hold {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return HoldUnknown
	}
	defer proc.Close()
	r.descriptors.startSweep(r.root)
	switch how, _ := r.checkHold(proc, pid, device); how {
	case notHeld:
		return HoldsNot
	case held, heldByMap:
		return Holds
	case noSuchProcess:
		return HeldUntilExit
	default:
		return HoldUnknown
	}
}

// MayHold reports whether a process has any device node open, or may have one
// because its descriptors cannot be read.
func (r *Reader) MayHold(p *Process) bool {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	r.descriptors.startSweep(r.root)
	t, err := r.descriptors.refreshTable(proc, p.PID, time.Now(), always)
	return err != nil || t.denied || len(t.holds) > 0
}

// checkHold reports whether a process holds the node of a device, and by which
// descriptors. It distinguishes exited openers from processes that inherited
// from them.
func (r *Reader) checkHold(proc hostfs.Dir, pid, device int) (holding, []int) {
	now := time.Now()
	for _, m := range []scanMode{ifChanged, always} {
		t, err := r.descriptors.refreshTable(proc, pid, now, m)
		switch {
		case noProcess(err) && r.whyHidden(pid) != "":
			return holdUnknown, nil
		case noProcess(err):
			return noSuchProcess, nil
		case err != nil, t.denied:
			return holdUnknown, nil
		}
		if fds := t.ofDevice(device); len(fds) > 0 {
			return held, fds
		}
		// Unchanged in size is not proof enough for a no.
	}
	return r.checkMapped(pid, device), nil
}

// ofDevice returns the descriptors of one device.
func (t *descriptorTable) ofDevice(device int) (fds []int) {
	for _, h := range t.holds {
		if h.device == device {
			fds = append(fds, h.fd)
		}
	}
	return fds
}

// checkMapped finds a device that is mapped while no descriptor of it is open:
// the mapping alone keeps it open for the driver.
func (r *Reader) checkMapped(pid, device int) holding {
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
		return holdUnknown
	case !p.Alive():
		return noSuchProcess
	default:
		return notHeld
	}
}
