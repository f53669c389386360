// Package blocks is the exact state of tt-metal's allocators, as those know it
// themselves: which ranges of the banks are taken, what was asked for, where
// the holes are and what would still fit.
//
// Its place in the flow: two producers fill it, source/uprobe (from outside,
// through the kernel) and source/track (from libttmon inside the process);
// collect takes sums from it, the API and `ttmon mem` show it.
//
//	Process ─► Allocator (one per device or mesh) ─► List (one per pool) ─► Block
//
// A List stands for one free list of tt-metal, which is the same for every bank
// of its pool: a buffer takes the same range of addresses in all of them, also
// where it has no bytes. So addresses, sizes, capacity and holes are those of
// one bank; what a pool holds is that times its banks. L1 that is given out core by
// core (HYBRID) has a list for each core and one for all: CoreL1 says what they are
// together.
//
// Nothing here is safe for concurrent use: each producer owns what it fills and
// hands out clones.
package blocks
