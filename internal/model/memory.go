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

// PoolNamed finds a pool by its name; ok is false where there is none.
func PoolNamed(name string) (p Pool, ok bool) {
	for i, n := range poolNames {
		if n == name {
			return Pool(i), true
		}
	}
	return 0, false
}

// PoolBytes is a number of bytes per pool. An array, so that adding a pool
// reaches every place that sums them.
type PoolBytes [NumPools]Bytes

// Total sums the pools that are accounted for.
func (b PoolBytes) Total() Bytes {
	var s Sum
	for _, v := range b {
		if v.Status() != Absent {
			s.Add(v)
		}
	}
	return s.Bytes()
}

// CBMeaning says what a figure of circular buffers counts.
type CBMeaning string

// What circular-buffer figures count.
const (
	CBCached   CBMeaning = "cached programs"                   // the union over all cached programs: a high-water mark, up to 8 times too high
	CBPartly   CBMeaning = "cached programs, most ops missing" // from 0.78 on most ops do not report theirs any more
	CBResident CBMeaning = "resident"                          // what the last dispatch left in L1
	CBLargest  CBMeaning = "largest program, of each core"     // how much of a core's L1 the largest cached program takes; programs lie over each other
	CBReported CBMeaning = "reported"                          // what the program's own client says
	CBMixed    CBMeaning = "several meanings"                  // programs of several kinds
)

// Tracking says how far the memory figures of a chip or process can be trusted.
type Tracking string

// Tracking states.
const (
	TrackOK      Tracking = "ok"
	TrackPartial Tracking = "partial"        // some users of the chip are not in the figures
	TrackDenied  Tracking = "denied"         // accounted, but we may not read it
	TrackAbsent  Tracking = "absent"         // no process accounts for it
	TrackUnknown Tracking = "unknown_layout" // accounted in a layout we do not know
)

// PoolUse is one pool of one chip. Used is what buffers asked for; Occupied is
// what they take from the pool (padding, and the same range in every bank),
// and is known only where the allocator itself is seen.
type PoolUse struct {
	Used     Bytes
	Occupied Bytes
	// Total is how much there is: of the device for DRAM, of what tt-metal's
	// allocator has for L1; or the allocator's own figure where it is seen.
	Total             Reading[uint64]
	Free, LargestFree Reading[uint64] // only where the allocator itself is seen
	// CoreLeast and CoreMost are the largest hole of the core that has least room, and
	// of the one that has most; only where L1 is given out core by core (HYBRID).
	// LargestFree is then what all cores have free at the same addresses.
	CoreLeast, CoreMost Reading[uint64]
}

// Memory is the memory of a chip, or of a board's chips together.
type Memory struct {
	Tracking Tracking // empty means TrackAbsent
	Doubts   []Doubt  // about the figures as a whole; those of its processes are with them
	Pools    [NumPools]PoolUse
	CB       CBMeaning
	Stale    Bytes // of dead processes, not in Used
	// Inferred is what the driver counts in L1 and no process accounts for: circular
	// buffers, kernels, and what else is there.
	Inferred Bytes
}

// Chip is one ASIC: the one behind a PCIe endpoint, or a remote one reached
// through it over Ethernet.
type Chip struct {
	ID     Reading[uint64] // UMD's chip_unique_id
	Name   string          // "L", "R", or empty on single-chip endpoints
	Remote bool
	Region string // the accounting region it was read from, if any
	// Candidates are the devices of which one has the chip, for a chip in
	// Snapshot.Unmatched that is not foreign to this host.
	Candidates []int
	Memory     Memory
	Work       Work
	// Temperature (°C) and Power (W) of a chip behind Ethernet, which only the
	// vendor's exporter reads. Those of a device's own chip are the device's.
	Temperature, Power Reading[float64]
	SensorsFrom        TelemetryWay // empty: nothing was read
}

// ChipPlace is where a chip is: a device by its kernel index, and the chip's
// name on it, which a board with one chip does not give.
type ChipPlace struct {
	Device int
	Name   string
}
