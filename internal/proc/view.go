package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// view is how the processes of the host look from here.
type view struct {
	self int // our own pid in the tree; never reported
	// ours: the tree's pids are numbers of our own pid namespace. They are
	// not where a container looks at a mount of the host's /proc.
	ours bool
	// live: it is a kernel's /proc, not a recorded or made-up tree.
	live bool
	// hiding: /proc is mounted with hidepid, and it is in force for us. A
	// process that cannot be seen may then be alive.
	hiding bool
}

func lookAtProc(root hostfs.Root) view {
	v := view{self: os.Getpid(), ours: true, live: isProcfs(root)}
	self, err := root.Readlink("/proc/self")
	if err != nil {
		// Not a live /proc, or one of a namespace that does not contain us.
		v.ours = !v.live
		return v
	}
	if pid, err := strconv.Atoi(self); err == nil {
		v.self = pid
	}
	if b, err := root.Read("/proc/self/status", 16<<10); err == nil {
		// Listed are our numbers in the mount's namespace and in each one
		// below it: a single number means that the mount's is ours.
		v.ours = len(parseStatus(b).NSPIDs) <= 1
	}
	// Every pid namespace has a process 1, so not seeing it proves hidepid.
	v.hiding = !root.Exists("/proc/1")
	return v
}

// SeesAll tells whether no process of the host is hidden from us: neither by
// hidepid nor because we are in a pid namespace below the host's. A recorded
// tree shows all there is.
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

// OwnPIDs tells whether the numbers of processes are those of our own pid
// namespace, and can be used in system calls.
func (r *Reader) OwnPIDs() bool { return r.view.live && r.view.ours && r.view.self == os.Getpid() }

func pidNamespace(root hostfs.Root, pid string) uint64 {
	link, err := root.Readlink("/proc/" + pid + "/ns/pid")
	if err != nil {
		return 0
	}
	return parseNamespace(link)
}

// parseNamespace takes the inode out of "pid:[4026531836]"; 0 if it has none.
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

// concealed says why a pid that /proc does not show may be a live process all
// the same. Usually there is no reason. With hidepid the kernel still says
// whether the number is taken; a tree without any process says nothing about
// any of them.
func (r *Reader) concealed(pid int) (why string) {
	switch {
	case r.view.hiding && (!r.view.ours || pidTaken(pid)):
		return "/proc is mounted with hidepid: only root sees this process"
	case !r.view.live && !r.peopled():
		return "there are no processes in the /proc of this tree"
	default:
		return ""
	}
}

// pidTaken tells whether a number of our own namespace belongs to a process.
func pidTaken(pid int) bool {
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

// peopled tells whether the tree has any process.
func (r *Reader) peopled() bool {
	names, _ := r.root.AppendNames(nil, "/proc")
	for _, name := range names {
		if isDigits(name) {
			return true
		}
	}
	return false
}
