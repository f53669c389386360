package proc

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// dropLockOnly removes uses that only hold or wait for the driver's locks, and
// counts their descriptors. UMD keeps its locks in the driver since 0.9.14,
// through descriptors of their own opened with O_APPEND: such a descriptor does
// not request power, and a process that has no other and maps nothing of the
// chip uses no device. Where that cannot be checked the use is kept.
func (res *resolution) dropLockOnly() (locking int) {
	for id, p := range res.uses {
		if p.State != model.Running {
			continue
		}
		p.Devices = slices.DeleteFunc(p.Devices, func(u model.DeviceUse) bool {
			n, only := res.r.lockOnly(p.PID, u.Device)
			if !only || u.OpenFDs.V > n { // others have descriptors that it opened
				return false
			}
			locking += u.OpenFDs.V
			return true
		})
		if len(p.Devices) == 0 {
			delete(res.uses, id)
		}
	}
	return locking
}

// lockOnly reports whether all descriptors that a process has of a device were
// opened with O_APPEND, and nothing of it is mapped.
func (r *Reader) lockOnly(pid, device int) (descriptors int, only bool) {
	t := r.descriptors.byPID[pid]
	if t == nil || t.denied || !t.whole {
		return 0, false
	}
	fds := t.ofDevice(device)
	if len(fds) == 0 {
		return 0, false
	}
	appends, known := t.appends[device]
	if !known {
		appends = r.allAppend(pid, fds)
		if t.appends == nil {
			t.appends = map[int]bool{}
		}
		t.appends[device] = appends
	}
	return len(fds), appends && r.checkMapped(pid, device) == NotHeld
}

// allAppend reports whether descriptors of a process were all opened with
// O_APPEND.
func (r *Reader) allAppend(pid int, fds []int) bool {
	p, err := r.Process(pid)
	if err != nil || len(fds) > maxHolds {
		return false
	}
	for _, fd := range fds {
		if i, err := r.readFDInfo(p, fd); err != nil || i.Flags&unix.O_APPEND == 0 {
			return false
		}
	}
	return true
}

// parseFlags reads the octal number of fdinfo's line "flags".
func parseFlags(text []byte) (flags uint32) {
	for _, c := range bytes.TrimSpace(text) {
		if c < '0' || c > '7' || flags >= 1<<29 {
			return 0
		}
		flags = flags<<3 | uint32(c-'0')
	}
	return flags
}
