package allocsock

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
)

// soPeerPIDFD is SO_PEERPIDFD (Linux 6.5): the descriptor of the very process
// that connected, whoever has its pid by now.
const soPeerPIDFD = 77

// peer is the process at the other end of a connection.
type peer struct {
	ledger.Info
	pidfd  int  // -1 if its end cannot be watched
	exited bool // it is gone already
}

// credentials returns who connected, as the kernel noted it then.
func credentials(fd int) (*unix.Ucred, error) {
	cred := new(unix.Ucred)
	if errno := rawCredentials(fd, cred); errno != 0 {
		return nil, fmt.Errorf("asking who connected: %w", errno)
	}
	return cred, nil
}

// strangers numbers processes that have no start time we could read.
var strangers atomic.Uint64

// lookUp identifies the process at the other end of a connection.
func lookUp(fd int, cred *unix.Ucred) peer {
	p := unidentified(cred)
	p.pidfd, p.exited = openPIDFD(fd, p.PID)
	p.identify()
	return p
}

func unidentified(cred *unix.Ucred) peer {
	return peer{Info: ledger.Info{ProcessID: model.ProcessID{PID: int(cred.Pid)}, UID: int(cred.Uid), GID: int(cred.Gid)}}
}

// identify finds out the start time, now that the process is held by its
// pidfd.
func (p *peer) identify() {
	if p.PID != 0 {
		p.StartTicks, p.Name = readStat(p.PID)
	}
	if p.pidfd >= 0 && hasExited(p.pidfd) {
		// A zombie's stat is its own; of one that has been waited for, the
		// pid may be another's. Either way nothing more will come of it.
		p.exited = true
		if p.StartTicks != 0 && !isZombie(p.PID) {
			p.StartTicks, p.Name = 0, ""
		}
	}
	if p.StartTicks == 0 {
		p.StartTicks = p.stranger()
	}
}

// openPIDFD returns a descriptor that becomes readable when the peer exits.
func openPIDFD(fd, pid int) (pidfd int, exited bool) {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	switch {
	case err == nil:
		return pidfd, false
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENODATA), errors.Is(err, unix.EINVAL):
		return -1, true // it has exited and been waited for
	case pid == 0:
		return -1, false // in another pid namespace: only its connection tells
	}
	// Before 6.5 the pid must do. It can be another's only if the peer has
	// died since it connected and the pid has come round meanwhile.
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, errors.Is(err, unix.ESRCH)
	}
	return pidfd, false
}

// strangerBit marks numbers that are no start time.
const strangerBit = 1 << 63

// stranger is a number for a process without a start time: the same for all
// its connections where the kernel gives pidfds inodes of their own (6.9).
func (p *peer) stranger() uint64 {
	var st unix.Stat_t
	var fs unix.Statfs_t
	const pidfsMagic = 0x50494446
	if p.pidfd >= 0 && unix.Fstatfs(p.pidfd, &fs) == nil && fs.Type == pidfsMagic && unix.Fstat(p.pidfd, &st) == nil {
		return st.Ino | strangerBit
	}
	return strangers.Add(1) | strangerBit | 1<<62
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

// ownHost is where clients are looked at: their pids are those of our own
// namespace, wherever the collector looks.
var ownHost = hostfs.Root{}
