package proc

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// errNotMemory means that /dev/shm may be a disk, or FUSE.
var errNotMemory = errors.New("not a memory file system")

// SharedMemoryPath is /dev/shm as a process sees it.
func SharedMemoryPath(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/root/dev/shm" }

// OpenSharedMemory opens /dev/shm as a process sees it, given its directory
// below /proc. Like OpenInRoot it may block on what is mounted there. It
// rejects anything but a memory file system, so that later reads cannot block.
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
