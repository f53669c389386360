package proc

import (
	"encoding/json"

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
