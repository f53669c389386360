package proc

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Hold is whether a process holds the node of a device, opened or inherited.
type Hold int

const (
	Held      Hold = iota // by at least one descriptor
	HeldByMap             // all descriptors closed, but the device is still mapped
	NotHeld
	HoldUnknown   // the process runs, but we may not read its descriptors
	NoSuchProcess // it has exited, or is a zombie
)

// HasOpen reports whether a process holds a device.
func (r *Reader) HasOpen(pid, device int) Hold {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return HoldUnknown
	}
	defer proc.Close()
	r.descriptors.startSweep(r.root)
	how, _ := r.checkHold(proc, pid, device)
	return how
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
func (r *Reader) checkHold(proc hostfs.Dir, pid, device int) (Hold, []int) {
	now := time.Now()
	for _, m := range []scanMode{ifChanged, always} {
		t, err := r.descriptors.refreshTable(proc, pid, now, m)
		switch {
		case noProcess(err) && r.whyHidden(pid) != "":
			return HoldUnknown, nil
		case noProcess(err):
			return NoSuchProcess, nil
		case err != nil, t.denied:
			return HoldUnknown, nil
		}
		if fds := t.ofDevice(device); len(fds) > 0 {
			return Held, fds
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
func (r *Reader) checkMapped(pid, device int) Hold {
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
		return HeldByMap
	case noProcess(err):
		return NoSuchProcess
	case err != nil:
		return HoldUnknown
	case !p.Alive():
		return NoSuchProcess
	default:
		return NotHeld
	}
}
