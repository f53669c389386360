package proc

import (
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// maxComparisons bounds how many pairs of descriptors one sweep compares, at 2 to
// 3 µs each: two processes with ten thousand descriptors of a device have a
// hundred million pairs.
const maxComparisons = 10_000

// notShared returns the descriptors of a holder that no running opener shares.
// While its opener runs and holds it, an inherited descriptor counts as the
// opener's. Where the kernel does not say, it counts as an opener's if the
// holder descends from one.
func (res *resolution) notShared(h Holder, openers map[int]bool, holders []Holder) []int {
	var own, open []int
	for _, fd := range h.FDs {
		switch shared, decided := res.shared(h.PID, fd, openers, holders); {
		case shared:
		case decided:
			own = append(own, fd)
		default:
			open = append(open, fd)
		}
	}
	if len(open) > 0 && !res.descends(h.PID, openers) {
		own = append(own, open...)
	}
	return own
}

// shared reports whether an opener has the same open file description.
func (res *resolution) shared(pid, fd int, openers map[int]bool, holders []Holder) (shared, decided bool) {
	for _, o := range holders {
		if !openers[o.PID] {
			continue
		}
		for _, other := range o.FDs {
			if res.compared == maxComparisons {
				return false, false
			}
			res.compared++
			same, ok := res.sameDescription(pid, fd, o.PID, other)
			if same {
				return true, true
			}
			decided = decided || ok
		}
	}
	return false, decided
}

// sameDescription reports whether two descriptors refer to one open file
// description; ok is false where the kernel does not say.
func (res *resolution) sameDescription(pid, fd, otherPID, otherFD int) (same, ok bool) {
	if !res.r.view.live || !res.r.view.ownPIDs {
		return false, false // pids of another namespace
	}
	const kcmpFile = 0 // it may wait for a process in execve
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(otherPID), kcmpFile, uintptr(fd), uintptr(otherFD), 0)
	return errno == 0 && order == 0, errno == 0
}

// descends reports whether a process is a descendant of one of the openers.
func (res *resolution) descends(pid int, openers map[int]bool) bool {
	for range 64 { // deeper than any family that is not a loop
		p := res.describe(pid)
		if p.PPID <= 1 {
			return false
		}
		if pid = p.PPID; openers[pid] {
			return true
		}
	}
	return false
}

// addExited adds the opener of a claim as exited, if that is certain: all
// processes of the host were scanned, and none matches. It reports whether it
// did. A pid that another process has by now is not reported as the opener's.
func (res *resolution) addExited(c *claim) bool {
	if !res.found.Complete() || !res.r.SeesAll() || res.describe(c.pid).State == model.Running {
		return false
	}
	c.verdict = openerExited
	gone := exitedProcess(c.pid)
	res.addUse(&gone, model.DeviceUse{Device: c.device, OpenFDs: model.Value(c.lines)})
	return true
}

// addToLostDevice adds the holders of a device that is gone. Which others may
// hold it does not matter then.
func (res *resolution) addToLostDevice(device int, holders []Holder) {
	for _, h := range holders {
		res.addHolder(h, model.DeviceUse{Device: device, OpenFDs: model.Value(len(h.FDs))})
	}
}

// hasPtraceCapability reports whether we have CAP_SYS_PTRACE, with which root
// reads other processes.
func hasPtraceCapability() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&hdr, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
