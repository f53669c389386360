package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Executable is the path of the program that the process with a pid runs now,
// as it sees it itself. Needs the right to trace the process.
func Executable(root hostfs.Root, pid int) (string, error) {
	return root.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
}

// Owner is the user that the process with a pid runs as.
func Owner(root hostfs.Root, pid int) (uid int, err error) {
	st, err := root.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return -1, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	return int(st.Uid), nil
}

// OpenDescriptors counts those of this process.
func OpenDescriptors() (int, error) {
	names, err := hostfs.Root{}.Names("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	return len(names) - 1, nil // one is the directory
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

// maxLook is how much of a list of mappings MapsMention goes through.
const maxLook = 16 << 20

// ErrNotSaid is the error of a list of mappings that could not be looked
// through: it is empty, or longer than there was time for.
var ErrNotSaid = errors.New("what it maps could not be looked through")

// MapsMention tells whether one of names occurs in the list of what the
// process with a pid maps now. A process decides itself how long that takes:
// it may have tens of thousands of mappings, with long names. So the list is
// read in pieces, and given up after by; a single piece may still block (see
// Guard). It is for a single look, without a Reader.
func MapsMention(root hostfs.Root, pid int, by time.Time, names ...string) (bool, error) {
	fd, err := root.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false, fmt.Errorf("reading the mappings of process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	return mention(func(b []byte) (int, error) { return unix.Read(fd, b) }, by, names)
}

// mention looks for names in what read gives, until that is nothing.
func mention(read func([]byte) (int, error), by time.Time, names []string) (bool, error) {
	overlap := 0
	for _, name := range names {
		overlap = max(overlap, len(name)-1)
	}
	buf := make([]byte, 64<<10)
	kept, total := 0, 0
	for {
		n, err := read(buf[kept:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false, err
		case n <= 0 && total == 0:
			return false, ErrNotSaid
		case n <= 0:
			return false, nil
		}
		seen := buf[:kept+n]
		for _, name := range names {
			if bytes.Contains(seen, []byte(name)) {
				return true, nil
			}
		}
		if total += n; total > maxLook || time.Now().After(by) {
			return false, ErrNotSaid
		}
		kept = copy(buf, seen[max(len(seen)-overlap, 0):])
	}
}
