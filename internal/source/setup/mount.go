package setup

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// capabilities are those that ttmon and ttmond make use of, where they have
// them: to look into other users' processes and regions, and to watch allocators.
var capabilities = []struct {
	name string
	bit  uint
}{
	{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE},
	{"CAP_DAC_READ_SEARCH", unix.CAP_DAC_READ_SEARCH},
	{"CAP_BPF", unix.CAP_BPF},
	{"CAP_PERFMON", unix.CAP_PERFMON},
}

// isMount reports whether a root is a mount, and not ours nor a mere directory: a
// tree of files made for --root.
func isMount(root hostfs.Root) bool {
	if root == (hostfs.Root{}) {
		return false
	}
	mounts, err := hostfs.Root{}.Read("/proc/self/mountinfo", 4<<20)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == root.String() {
			return true
		}
	}
	return false
}

// readMount looks at a mount of a host's root, from inside a container.
func readMount(root hostfs.Root) *model.HostMount {
	m := &model.HostMount{Dir: root.String(), Lacking: lacking()}
	// What procfs says of "self" is our number in the namespace that it was mounted
	// for. Of a namespace that we are not below it says nothing.
	self, err := root.Readlink("/proc/self")
	m.Proc = err == nil || root.Exists("/proc/1/stat")
	switch n, nerr := strconv.Atoi(self); {
	case err == nil && nerr == nil:
		m.SamePIDs = model.Value(n == os.Getpid())
	case m.Proc:
		m.SamePIDs = model.Value(false)
	default:
		m.SamePIDs = model.Missing[bool](model.Absent, "")
	}
	dev, err := root.Stat("/dev")
	shm, shmErr := root.Stat(shm)
	m.Shm = err == nil && shmErr == nil && dev.Dev != shm.Dev
	return m
}

// lacking are the capabilities that this process is without.
func lacking() (list []string) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil
	}
	for _, c := range capabilities {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			list = append(list, c.name)
		}
	}
	return list
}
