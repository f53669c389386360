package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// firstNamespace is the inode that the kernel gives the first pid namespace.
const firstNamespace = 0xEFFFFFFC

// Marker is a file that only simulated hosts have.
const Marker = "/sys/ttmon-sim"

// hostNamespace is the pid namespace that has all processes of the host: the
// kernel's first one, or the one that a simulated host names as its own. It
// cannot be faked on a real host, whose /sys is the kernel's.
func hostNamespace(root hostfs.Root) uint64 {
	var marker struct {
		Namespace uint64 `json:"pid_namespace"`
	}
	if text, err := root.Read(Marker, 4096); err == nil && json.Unmarshal(text, &marker) == nil && marker.Namespace != 0 {
		return marker.Namespace
	}
	return firstNamespace
}

// simulation identifies the simulated host that a Reader reads; zero: a real
// one. Each has a file system of its own for its marker, which distinguishes
// two simulated hosts of one machine.
type simulation struct{ device, inode uint64 }

// findSimulation reads the marker. A plain tree (--root) has no processes of
// its own, so none are filtered out.
func findSimulation(root hostfs.Root) simulation {
	st, err := root.Stat(Marker)
	if err != nil || root.Path("/") != "/" {
		return simulation{}
	}
	return simulation{uint64(st.Dev), st.Ino}
}

// ownProcesses filters out the processes of the machine on which a simulated
// host runs, and those of other simulated hosts: they do not see its marker.
// One whose root may not be read is kept.
func (s simulation) ownProcesses(root hostfs.Root, pids []int) []int {
	if s == (simulation{}) {
		return pids
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		st, err := root.Stat("/proc/" + strconv.Itoa(pid) + "/root" + Marker)
		if err != nil {
			return errors.Is(err, fs.ErrNotExist)
		}
		return simulation{uint64(st.Dev), st.Ino} != s
	})
}

// OfAnotherHost reports whether a process is known to belong to another host
// than the simulated one: to the machine that it runs on, or to another
// simulated host. On a real host it is false. It may be called from any
// goroutine.
func (r *Reader) OfAnotherHost(pid int) bool {
	if r.simulation == (simulation{}) {
		return false
	}
	if _, err := r.root.Stat("/proc/" + strconv.Itoa(pid) + "/root/"); err != nil {
		return false // it has exited, or may not be read
	}
	return len(r.simulation.ownProcesses(r.root, []int{pid})) == 0
}

// HostMounts is the mountinfo of the host's first process, or ours where that
// may not be read.
func HostMounts(root hostfs.Root) ([]byte, error) {
	const enough = 16 << 20
	if b, err := root.Read("/proc/1/mountinfo", enough); err == nil {
		return b, nil
	}
	return root.Read("/proc/self/mountinfo", enough)
}
