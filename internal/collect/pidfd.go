package collect

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// maxPidfds bounds the descriptors that are held for processes at devices.
const maxPidfds = 512

// pidfds holds a descriptor of each process at a device: through it Linux 6.15 and
// newer tell the wait status of a process after its parent has waited for it.
// Holding one neither delays nor changes the process.
type pidfds struct {
	root hostfs.Root
	fds  map[model.ProcessID]int
	off  bool // this kernel does not offer it
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h, in its first size.
type pidfdInfo struct {
	mask     uint64
	cgroupID uint64
	ids      [11]uint32
	exitCode int32
}

const (
	pidfdGetInfo  = 0xc040ff0b // _IOWR(0xff, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3
)

// hold opens a descriptor of a process, if that is of use.
func (p *pidfds) hold(id model.ProcessID) {
	if _, held := p.fds[id]; held || p.off || len(p.fds) >= maxPidfds || p.root.Path("/") != "/" {
		return
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return
	}
	// The number may have had a new owner since the snapshot was made.
	if st, err := proc.ReadStat(p.root, id.PID); err != nil || st.Start != id.StartTicks {
		unix.Close(fd)
		return
	}
	if p.fds == nil {
		p.fds = map[model.ProcessID]int{}
	}
	p.fds[id] = fd
}

// status is the wait status of a process that has exited.
func (p *pidfds) status(id model.ProcessID) (status int, known bool) {
	fd, held := p.fds[id]
	if !held {
		return 0, false
	}
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if errno == unix.ENOTTY || errno == unix.EINVAL { // before 6.13
		p.off = true
	}
	return int(info.exitCode), errno == 0 && info.mask&pidfdInfoExit != 0
}

// release closes the descriptor of a process.
func (p *pidfds) release(id model.ProcessID) {
	if fd, held := p.fds[id]; held {
		unix.Close(fd)
		delete(p.fds, id)
	}
}

func (p *pidfds) close() {
	for id := range p.fds {
		p.release(id)
	}
}
