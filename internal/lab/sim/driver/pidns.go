package driver

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readerNamespace is the pid namespace of a thread; the caller is waiting for
// our answer, so it is still there.
func readerNamespace(tid int) uint64 {
	return inode(fmt.Sprintf("/proc/%d/ns/pid", tid))
}

func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// tgid is the process of a thread.
func tgid(tid int) int {
	if s, ok := statusField(tid, "Tgid:"); ok {
		if pid, err := strconv.Atoi(s); err == nil {
			return pid
		}
	}
	return tid
}

func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSuffix(string(b), "\n")
}

func statusField(pid int, key string) (string, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// numbers is a process's pid in each namespace from ours down to its own.
func numbers(pid int) []nsPID {
	field, ok := statusField(pid, "NSpid:")
	if !ok {
		return nil
	}
	pids := strings.Fields(field)
	list := make([]nsPID, len(pids))
	for i, p := range pids {
		list[i].pid, _ = strconv.Atoi(p)
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/pid", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			list[i].ns = st.Ino
		}
		parent, e := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		unix.Close(fd)
		fd, err = parent, e
	}
	if err == nil {
		unix.Close(fd)
	}
	return list
}
