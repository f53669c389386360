package daemon

import (
	"bufio"
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// When the start is over: all parts are set up, and the first snapshots are made;
// then, when programs have been found and their libraries read; and now and then.
var trimAfter = []time.Duration{15 * time.Second, 30 * time.Second, 10 * time.Minute}

// Trim gives back what only the start needed, until ctx is done: free memory, and
// the pages of the program's own file, half of which are code and tables to set
// libraries up. What is needed again comes from the page cache.
func Trim(ctx context.Context) error {
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(trimAfter[min(i, len(trimAfter)-1)]):
			trim()
		}
	}
}

func trim() {
	debug.FreeOSMemory()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if from, to, ok := constantPages(lines.Text(), exe); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}

// constantPages reads a line of /proc/self/maps. ok reports whether it is a part
// of the program's file that is mapped read-only, so that the file still has
// all that is in it.
func constantPages(line, exe string) (from, to uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 || f[1] != "r-xp" && f[1] != "r--p" || strings.Join(f[5:], " ") != exe {
		return 0, 0, false
	}
	begin, end, _ := strings.Cut(f[0], "-")
	a, err1 := strconv.ParseUint(begin, 16, 64)
	b, err2 := strconv.ParseUint(end, 16, 64)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && a < b
}
