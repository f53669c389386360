package node

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// The memory of the daemon is bounded by what it lets others make grow; see
// docs/security.md. What it may have comes from its cgroup, and the rest follows:
//
//   - Go collects its garbage before the heap reaches goShare of it.
//   - Live buffers, which are not in the heap, have half as much; twice of that where
//     programs free them in patches. If alloc.max_buffers needs more, fewer are kept
//     account of, and the log says so: rather that than being killed. What is left of
//     the whole is the kernel's, for sockets.
//   - A sixth is for what processes write down of their blocks, and a sixth for
//     the blocks that are seen through the kernel. A user may have half of each.
const (
	goShare     = 0.4
	bufferBytes = 46 // of a live buffer, in the ledger
	blockBytes  = 64 // of a block of a watched process
	leastHeap   = 48 << 20
)

// memoryBudget is the memory that the daemon may have.
type memoryBudget struct {
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

// newMemoryBudget divides up a limit; 0 for none.
func newMemoryBudget(limit int64) memoryBudget {
	may := memoryBudget{limit: limit, buffers: math.MaxInt}
	heap := int64(unlimited)
	if limit > 0 {
		heap = max(int64(goShare*float64(limit)), leastHeap)
		may.heap, may.buffers = heap, max(int(heap/2/bufferBytes), 1000)
	}
	may.ledgers, may.watched = shareOf(heap/6), shareOf(heap/6/blockBytes)
	return may
}

// apply sets Go's memory limit. $GOMEMLIMIT takes precedence.
func (m memoryBudget) apply() {
	if m.heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.heap)
	}
}

// blocks divides up the blocks of watched processes: those configured, or as many
// as fit.
func (m memoryBudget) blocks(configured int64) budget.Limit {
	if configured == 0 || configured >= m.watched.All {
		return m.watched
	}
	return shareOf(configured)
}

// maxBuffers is how many live buffers of those configured fit.
func (m memoryBudget) maxBuffers(configured int, log *slog.Logger) int {
	if configured <= m.buffers {
		return configured
	}
	log.Warn("alloc.max_buffers exceeds the memory limit; tracking fewer buffers",
		"max_buffers", configured, "fit", m.buffers, "memory_limit", m.limit)
	return m.buffers
}
