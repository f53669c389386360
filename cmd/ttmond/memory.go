package main

import (
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/budget"
)

// The memory of the daemon is bounded by what it lets others make grow; see
// docs/security.md. What it may have comes from its cgroup, and the rest follows:
//
//   - Go collects its garbage before the heap reaches goShare of it. A successor
//     has as much while it takes over; what is left of the whole is the kernel's,
//     for sockets.
//   - Half of that heap is for live buffers. If alloc.max_buffers needs more, fewer
//     are kept account of, and the log says so: rather that than being killed.
//   - A sixth is for what processes write down of their blocks, and a sixth for
//     the blocks that are seen through the kernel. A user may have half of each.
const (
	goShare     = 0.4
	bufferBytes = 46 // of a live buffer, in the ledger
	blockBytes  = 64 // of a block of a watched process
	leastHeap   = 48 << 20
)

// allowance is the memory that the daemon may have.
type allowance struct {
	limit   int64        // of the cgroup; 0: none
	heap    int64        // of Go's heap; 0: as much as there is
	buffers int          // live buffers at most, whatever was configured
	ledgers budget.Limit // bytes, of copies of ledgers
	watched budget.Limit // blocks, of watched processes
}

// shareOf divides up a part of the heap: a user may have half, and root has an
// eighth to itself.
func shareOf(all int64) budget.Limit {
	return budget.Limit{PerUID: all / 2, All: all, Reserve: all / 8}
}

// unlimited is the heap that is divided up where no limit is known.
const unlimited = 1 << 30

// newAllowance divides up a limit; 0 for none.
func newAllowance(limit int64) allowance {
	may := allowance{limit: limit, buffers: math.MaxInt}
	heap := int64(unlimited)
	if limit > 0 {
		heap = max(int64(goShare*float64(limit)), leastHeap)
		may.heap, may.buffers = heap, max(int(heap/2/bufferBytes), 1000)
	}
	may.ledgers, may.watched = shareOf(heap/6), shareOf(heap/6/blockBytes)
	return may
}

// heed makes Go heed the limit. One that was given to Go as it knows it
// (GOMEMLIMIT) is the operator's.
func (m allowance) heed() {
	if m.heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.heap)
	}
}

// maxBuffers is how many live buffers of those configured fit.
func (m allowance) maxBuffers(configured int, log *slog.Logger) int {
	if configured <= m.buffers {
		return configured
	}
	log.Warn("alloc.max_buffers does not fit into the memory limit; fewer buffers are kept account of",
		"max_buffers", configured, "fit", m.buffers, "memory_limit", m.limit)
	return m.buffers
}

// memoryLimit is the memory that our cgroup, or one above it, or the machine has;
// 0 if that is not known.
func memoryLimit(root string) int64 {
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
