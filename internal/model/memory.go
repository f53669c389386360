package model

// Pool is a kind of device memory that tt-metal accounts for.
type Pool int

// The pools, in the order every view shows them.
const (
	DRAM Pool = iota
	L1
	L1Small
	Trace
	CB     // circular buffers; what is counted depends on the layout version
	Kernel // kernel binaries, where a client reports them
	NumPools
)

var poolNames = [NumPools]string{"dram", "l1", "l1_small", "trace", "cb", "kernel"}

func (p Pool) String() string { return poolNames[p] }

// Pools lists all pools in display order.
func Pools() []Pool { return []Pool{DRAM, L1, L1Small, Trace, CB, Kernel} }

// PoolBytes is a number of bytes per pool. An array, so that adding a pool
// reaches every place that sums them.
type PoolBytes [NumPools]Reading[uint64]

// Total sums the known pools; known is false when none is.
func (b PoolBytes) Total() (sum uint64, known bool) {
	for _, r := range b {
		if v, ok := r.Get(); ok {
			sum, known = sum+v, true
		}
	}
	return sum, known
}

// Tracking says how far the memory figures of a chip or process can be trusted.
type Tracking string

// Tracking states.
const (
	TrackOK      Tracking = "ok"
	TrackPartial Tracking = "partial"        // some users of the chip are not in the figures
	TrackDenied  Tracking = "denied"         // accounted, but we may not read it
	TrackAbsent  Tracking = "absent"         // nobody accounts for it
	TrackUnknown Tracking = "unknown_layout" // accounted in a layout we do not know
)

// PoolUse is one pool of one chip. Used is what buffers were allocated with;
// it is not "total minus free" (padding and lockstep take more).
type PoolUse struct {
	Used, Total                 Reading[uint64]
	Occupied, Free, LargestFree Reading[uint64] // only where the allocator itself is seen
}

// Memory is the memory of a chip, or of a board's chips together.
type Memory struct {
	Tracking Tracking // empty means TrackAbsent
	Note     string   // the remedy or the limit, as a sentence
	Pools    [NumPools]PoolUse
	CBMeans  string          // what the CB figure counts: "cached programs", "resident"
	Stale    Reading[uint64] // bytes of dead processes, not in Used
}

// Chip is one ASIC: the one behind a PCIe endpoint, or a remote one reached
// through it over Ethernet.
type Chip struct {
	ID     Reading[uint64] // UMD's chip_unique_id
	Name   string          // "L", "R", or empty on single-chip endpoints
	Remote bool
	Region string // the accounting region it was read from, if any
	Memory Memory
}
