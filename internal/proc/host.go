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
// kernel's first one, or the one that a simulated host names as its own.
// Nobody can make one believe that on a real host, whose /sys is the kernel's.
func hostNamespace(root hostfs.Root) uint64 {
	var marker struct {
		Namespace uint64 `json:"pid_namespace"`
	}
	if text, err := root.Read(Marker, 4096); err == nil && json.Unmarshal(text, &marker) == nil && marker.Namespace != 0 {
		return marker.Namespace
	}
	return firstNamespace
}

// simulation is the simulated host that a Reader reads; zero: a real one. The
// file system of its marker is its own, so it tells two simulated hosts of one
// machine apart.
type simulation struct{ device, inode uint64 }

// findSimulation looks for the marker. A plain tree (--root) has no processes
// of its own: nothing is left out there.
func findSimulation(root hostfs.Root) simulation {
	st, err := root.Stat(Marker)
	if err != nil || root.Path("/") != "/" {
		return simulation{}
	}
	return simulation{uint64(st.Dev), st.Ino}
}

// keepOwn leaves out the processes of the machine on which a simulated host
// runs, and those of other simulated hosts: they do not see its marker. One
// whose root may not be read is kept.
func (s simulation) keepOwn(root hostfs.Root, pids []int) []int {
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

// OfAnotherHost reports whether a process is known to belong to another host than
// the simulated one that is read: to the machine that it runs on, or to another
// simulated host. On a real host none does. It may be called from any goroutine.
func (r *Reader) OfAnotherHost(pid int) bool {
	if r.simulation == (simulation{}) {
		return false
	}
	if _, err := r.root.Stat("/proc/" + strconv.Itoa(pid) + "/root/"); err != nil {
		return false // it has ended, or may not be looked at
	}
	return len(r.simulation.keepOwn(r.root, []int{pid})) == 0
}
