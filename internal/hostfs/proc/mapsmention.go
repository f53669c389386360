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

// maxMapsScan bounds how much of a list of mappings MapsMention reads.
const maxMapsScan = 16 << 20

// ErrMapsUnread means that a list of mappings could not be scanned: it is
// empty, or there was no time to read all of it.
var ErrMapsUnread = errors.New("cannot scan the process's mappings")

// MapsMention reports whether one of names occurs in the mappings of a process.
// A process controls how long that takes: it may have tens of thousands of
// mappings, with long names. So the list is read in pieces until the deadline
// by; a single piece may still block (see Guard). It needs no Reader.
func MapsMention(root hostfs.Root, pid int, by time.Time, names ...string) (bool, error) {
	fd, err := root.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false, fmt.Errorf("cannot read the mappings of process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	return containsName(func(b []byte) (int, error) { return unix.Read(fd, b) }, by, names)
}

// containsName searches the bytes that read returns for names, until read
// returns none.
func containsName(read func([]byte) (int, error), by time.Time, names []string) (bool, error) {
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
			return false, ErrMapsUnread
		case n <= 0:
			return false, nil
		}
		seen := buf[:kept+n]
		for _, name := range names {
			if bytes.Contains(seen, []byte(name)) {
				return true, nil
			}
		}
		if total += n; total > maxMapsScan || time.Now().After(by) {
			return false, ErrMapsUnread
		}
		kept = copy(buf, seen[max(len(seen)-overlap, 0):])
	}
}
