package uprobe

import (
	"encoding/binary"
	"fmt"
)

// kind says what an event is about: the site of a probe, or the fate of a
// process. The numbers are those of bpf/watch.c.
type kind uint8

const (
	atAllocator   kind = iota + 1 // AllocatorImpl's constructor: [allocator]
	allocatorGone                 // its destructor: [allocator]
	atDRAMManager                 // BankManager's constructor with a vector of banks
	atL1Manager                   // and the one with a map of banks
	listMade                      // FreeListOpt's: [list, capacity, base, smallest<<32|alignment, allocator, banks<<8|buffer type]
	atAsk                         // BankManager::allocate_buffer
	taken                         // [list, size, address after base, size of the free block it is from, base, asked bytes]
	freed                         // [list, address]
	cleared                       // [list]
	shrunk                        // [list, bytes, from the low end]
	resized                       // [list]: a shrink is undone
	providerMade                  // [provider, chip's unique id, logical id]
	providerGone                  // [provider]
	recorded                      // [provider, list, chip's unique id]: a buffer of the list is on that chip
	atProgram                     // ProgramImpl::allocate_circular_buffers
	programGone                   // [program]
	cbMarked                      // [program, address, bytes of a core, how many before]: a circular buffer is laid out
	cbTracked                     // the same, where a release tells of it in another place
	numSites           = cbTracked + 1
	listFound     kind = 32 // found in use: as listMade, with the manager for the allocator
	blockFound    kind = 33 // [list, address after base, size]: a block of it
	listWhole     kind = 34 // [list, blocks]: these were all
	execed        kind = 64 // []
	exited        kind = 65 // [start, ns after boot]
	forked        kind = 66 // [pid of the parent, start in ns after boot]
	eventBytes         = 64
)

// ofSite says whether a probe was hit.
func (k kind) ofSite() bool { return k < execed }

// event is one report of the kernel.
type event struct {
	time uint64 // ns after boot
	pid  uint32
	kind kind
	odd  bool   // what was read of a list cannot be true
	lost uint16 // events of the process that were lost so far, the low bits
	word [6]uint64
}

func decode(b []byte) (e event, err error) {
	if len(b) < eventBytes {
		return e, fmt.Errorf("an event of %d bytes", len(b))
	}
	e.time = binary.NativeEndian.Uint64(b)
	e.pid = binary.NativeEndian.Uint32(b[8:])
	e.kind, e.odd = kind(b[12]), b[13] != 0
	e.lost = binary.NativeEndian.Uint16(b[14:])
	for i := range e.word {
		e.word[i] = binary.NativeEndian.Uint64(b[16+8*i:])
	}
	return e, nil
}
