package allocsock

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// soPeerPIDFD is SO_PEERPIDFD (Linux 6.5): a descriptor of the process that
// connected, even if another has its pid by now.
const soPeerPIDFD = 77

// peer is the process at the other end of a connection.
type peer struct {
	ledger.Info
	pidfd  int  // -1 if its exit cannot be watched
	exited bool // it has exited already
}

// close gives the descriptor up.
func (p *peer) close() {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

// lastSyntheticStart numbers processes whose start time cannot be read.
var lastSyntheticStart atomic.Uint64

// identifyPeer identifies the process at the other end of a connection.
func identifyPeer(fd int, cred *unix.Ucred) peer {
	p := unidentified(cred)
	p.pidfd, p.exited = openPIDFD(fd, p.PID)
	p.identify()
	return p
}

func unidentified(cred *unix.Ucred) peer {
	return peer{Info: ledger.Info{ProcessID: model.ProcessID{PID: int(cred.Pid)}, UID: int(cred.Uid), GID: int(cred.Gid)}}
}

// identify reads the start time, now that the pidfd pins the process.
func (p *peer) identify() {
	if p.PID != 0 {
		p.StartTicks, p.Name = readStat(p.PID)
	}
	if p.pidfd >= 0 && hasExited(p.pidfd) {
		// A zombie's stat is its own; after it was reaped, the pid may be another's.
		// Either way it sends nothing more.
		p.exited = true
		if p.StartTicks != 0 && !isZombie(p.PID) {
			p.StartTicks, p.Name = 0, ""
		}
	}
	if p.StartTicks == 0 {
		p.StartTicks = p.syntheticStart()
	}
}

// openPIDFD returns a descriptor that becomes readable when the peer exits.
func openPIDFD(fd, pid int) (pidfd int, exited bool) {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	switch {
	case err == nil:
		return pidfd, false
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENODATA), errors.Is(err, unix.EINVAL):
		return -1, true // it has exited and been reaped
	case pid == 0:
		return -1, false // in another pid namespace: only its connection shows
	}
	// Before 6.5 the pid must suffice. It can be another's only if the peer has
	// exited since it connected and the pid was reused meanwhile.
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, errors.Is(err, unix.ESRCH)
	}
	return pidfd, false
}

// syntheticBit marks numbers that are not a start time.
const syntheticBit = 1 << 63

// syntheticStart returns a number for a process without a start time: the same
// for all its connections where the kernel gives pidfds inodes of their own
// (6.9).
func (p *peer) syntheticStart() uint64 {
	var st unix.Stat_t
	var fs unix.Statfs_t
	const pidfsMagic = 0x50494446
	if p.pidfd >= 0 && unix.Fstatfs(p.pidfd, &fs) == nil && fs.Type == pidfsMagic && unix.Fstat(p.pidfd, &st) == nil {
		return st.Ino | syntheticBit
	}
	return lastSyntheticStart.Add(1) | syntheticBit | 1<<62
}

func hasExited(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

// readStat returns the start time and the name of a process, or zero values.
func readStat(pid int) (start uint64, name string) {
	s, err := proc.ReadStat(ownHost, pid)
	if err != nil {
		return 0, ""
	}
	return s.Start, string(s.Comm)
}

func isZombie(pid int) bool {
	s, err := proc.ReadStat(ownHost, pid)
	return err == nil && s.Gone()
}

// ownHost is where clients are read: their pids are those of our own namespace,
// whatever the collector reads.
var ownHost = hostfs.Root{}
