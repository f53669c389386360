package daemon

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MemoryLimit is the memory that our cgroup, or one above it, or the machine has;
// 0 if that is not known.
func MemoryLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	if b, err := os.ReadFile(path.Join(root, "proc/self/cgroup")); err == nil {
		for line := range strings.Lines(string(b)) {
			limit = min(limit, cgroupLimit(root, strings.TrimSpace(line)))
		}
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = min(limit, int64(uint64(info.Totalram)*uint64(info.Unit)/2)) // the workloads' is the rest
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// cgroupLimit is the smallest limit of a cgroup, given as a line of
// /proc/self/cgroup, and those above it. Inside a container the path may be of a
// place that is not mounted: then it is that of the mount itself.
func cgroupLimit(root, line string) int64 {
	parts := strings.SplitN(line, ":", 3)
	limit := int64(math.MaxInt64)
	if len(parts) != 3 {
		return limit
	}
	base, file := "sys/fs/cgroup", "memory.max"
	switch {
	case parts[1] == "":
	case strings.Contains(","+parts[1]+",", ",memory,"):
		base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
	default:
		return limit
	}
	for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
		if b, err := os.ReadFile(path.Join(root, base, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil { // not "max"
				limit = min(limit, n)
			}
		}
		if dir == "/" {
			return limit
		}
	}
}

// LimitHeap makes Go collect its garbage before the heap reaches most of a limit;
// 0 is none. $GOMEMLIMIT takes precedence.
func LimitHeap(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit * 4 / 5)
	}
}
