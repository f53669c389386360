package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// view describes which processes of the host this /proc shows.
type view struct {
	self int // our own pid in the tree; never reported
	// ownPIDs: the tree's pids are those of our own pid namespace. They are not
	// where a container reads a mount of the host's /proc.
	ownPIDs bool
	// live: it is a kernel's /proc, not a recorded or synthetic tree.
	live bool
	// hiding: /proc is mounted with hidepid, which applies to us. A process that
	// is not visible may then be running.
	hiding bool
}

func inspectProc(root hostfs.Root) view {
	v := view{self: os.Getpid(), ownPIDs: true, live: isProcfs(root)}
	self, err := root.Readlink("/proc/self")
	if err != nil {
		// Not a live /proc, or one of a namespace that does not contain us.
		v.ownPIDs = !v.live
		return v
	}
	if pid, err := strconv.Atoi(self); err == nil {
		v.self = pid
	}
	if b, err := root.Read("/proc/self/status", 16<<10); err == nil {
		// It lists our pid in the mount's namespace and in each one below it: a
		// single number means that the mount's is ours.
		v.ownPIDs = len(parseStatus(b).NSPIDs) <= 1
	}
	// Every pid namespace has a process 1, so not seeing it proves hidepid.
	v.hiding = !root.Exists("/proc/1")
	return v
}

// SeesAll reports whether every process of the host is visible: none is hidden
// by hidepid, or because we run in a pid namespace below the host's. A recorded
// tree is complete.
func (r *Reader) SeesAll() bool {
	if !r.view.live {
		return r.root.Exists("/proc")
	}
	if !r.root.Exists("/proc/1") { // every namespace has one: it is hidden
		return false
	}
	host := hostNamespace(r.root)
	return pidNamespace(r.root, "self") == host || pidNamespace(r.root, "1") == host
}

// OwnPIDs reports whether pids are those of our own pid namespace, and can be
// used in system calls.
func (r *Reader) OwnPIDs() bool { return r.view.live && r.view.ownPIDs && r.view.self == os.Getpid() }

func pidNamespace(root hostfs.Root, pid string) uint64 {
	link, err := root.Readlink("/proc/" + pid + "/ns/pid")
	if err != nil {
		return 0
	}
	return parseNamespace(link)
}

// parseNamespace parses the inode of "pid:[4026531836]"; 0 if it has none.
func parseNamespace(link string) uint64 {
	digits, ok := between(link, "pid:[", "]")
	if !ok {
		return 0
	}
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}

func isProcfs(root hostfs.Root) bool {
	var st unix.Statfs_t
	err := unix.Statfs(root.Path("/proc"), &st)
	return err == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// whyHidden returns why a pid that /proc does not list may still be a running
// process; usually "". With hidepid the kernel still reveals whether the pid is
// in use; a tree without any process says nothing about any of them.
func (r *Reader) whyHidden(pid int) (why string) {
	switch {
	case r.view.hiding && (!r.view.ownPIDs || pidInUse(pid)):
		return "/proc is mounted with hidepid: only root sees this process"
	case !r.view.live && !r.hasProcesses():
		return "there are no processes in the /proc of this tree"
	default:
		return ""
	}
}

// pidInUse reports whether a pid of our own namespace belongs to a process.
func pidInUse(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		unix.Close(fd)
		return true
	case unix.ESRCH, unix.EINVAL, unix.ENOENT: // the latter two: a thread's
		return false
	default: // not offered before Linux 5.3
		return unix.Kill(pid, 0) != unix.ESRCH
	}
}

// hasProcesses reports whether /proc lists any process.
func (r *Reader) hasProcesses() bool {
	names, _ := r.root.AppendNames(nil, "/proc")
	for _, name := range names {
		if isDigits(name) {
			return true
		}
	}
	return false
}
