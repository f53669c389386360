package proc

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// errNotMemory is the error of a /dev/shm that may be a disk, or FUSE.
var errNotMemory = errors.New("not a memory file system")

// SharedMemoryPath is /dev/shm as a process sees it.
func SharedMemoryPath(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/root/dev/shm" }

// OpenSharedMemory opens /dev/shm as a process sees it, given its directory
// below /proc. It may block on what is mounted there, as OpenInRoot may, and
// refuses anything but a memory file system, of which later reads cannot.
func OpenSharedMemory(dir hostfs.Dir) (fd int, err error) {
	if fd, err = OpenInRoot(dir, "/dev/shm"); err != nil {
		return -1, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC {
		unix.Close(fd)
		return -1, errNotMemory
	}
	return fd, nil
}
