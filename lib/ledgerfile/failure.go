package ledgerfile

import (
	"fmt"
	"math"
	"time"
)

// Failure is a request that failed, with the allocator as it was then.
type Failure struct {
	Number      uint64 // from 1, by the first request
	Kind        FailureKind
	Count       uint64 // requests of the same list and stack that failed
	First, Last time.Time
	// Time is when the request failed that the rest is of: the last one, unless
	// they came faster than their state could be copied.
	Time     time.Time
	Bytes    uint64 // of each bank
	Asked    uint64 // by the buffer, over all banks; 0: not known
	Page     uint64 // bytes that stay together; 0: not known
	Limit    uint64 // no address below it was allowed
	Shards   uint32 // banks that have a part of it; 0: interleaved, if ShardsKnown
	BottomUp bool
	// PageKnown and ShardsKnown say whether the buffer's are known.
	PageKnown, ShardsKnown bool
	Node                   uint32 // for Stack
	Tag                    string
	Tensor                 string // as in a Site
	Group                  uint32
	SubDevice              uint32       // as in a List
	Chips                  []int        // numbers of chips
	Lists                  []FailedList // of the allocator; the first one was asked
	// Missed counts blocks that found no room: then Lists have none.
	Missed uint32
	// Of a clash: the program, where its circular buffers end, and the lowest
	// address of a buffer.
	Program, Reach, Lowest uint64
	// Cores is a rectangle around the cores that the circular buffers are on: x
	// and y of the first and of the last one; nil: not known.
	Cores []int
	// Of a trace: trace_region_size, and what all traces need.
	Region, Needed uint64
	// SeveralDevices: it is of one of several, and which is not known.
	SeveralDevices bool
}

// FailureKind is what failed.
type FailureKind uint8

// The kinds.
const (
	NoRoom       FailureKind = 1 // the list has no hole that is large enough
	Clash        FailureKind = 2 // circular buffers reach into a buffer of L1
	TraceRefused FailureKind = 3 // a trace does not fit the trace region
)

// FailedList is a list as it was at a failure: its shape, and its blocks.
type FailedList struct {
	List
	Number int
	Blocks []FailedBlock
}

// FailedBlock is a block of it.
type FailedBlock struct {
	Address, Bytes, Asked uint64
	Born                  time.Time
	Node                  uint32 // for Stack
	Tag                   string
	Tensor                string // as in a Site
}

// Where the sections of failures are described, behind all else.
const (
	offFailures     = workHeader
	failuresHeader  = workHeader + 2*sectionSize
	failureSize     = 632
	failedListSize  = 72
	failedBlockSize = 48
	maxFailures     = 64
	maxFailedLists  = 6
	maxFailedBlocks = 1 << 20
)

// Offsets in the record of a failure, of its lists and of its blocks.
const (
	failNumber     = 0
	failCount      = 8
	failFirst      = 16
	failLast       = 24
	failTime       = 32
	failBytes      = 40
	failAsked      = 48
	failPage       = 56
	failLimit      = 64
	failShards     = 72
	failNode       = 76
	failTag        = 80
	failGroup      = 84
	failKind       = 88
	failBottomUp   = 89
	failKnown      = 90
	failLists      = 91
	failFirstBlock = 92
	failBlocks     = 96
	failMissed     = 100
	failChips      = 104
	failProgram    = 136
	failReach      = 144
	failLowest     = 152
	failCores      = 168
	failTensor     = 172
	failSubDevice  = 176
	failRegion     = 184
	failNeeded     = 192
	failList       = 200

	failedListNumber    = 0
	failedListPool      = 4
	failedListLate      = 5
	failedListBanks     = 8
	failedListNth       = 12
	failedListCapacity  = 16
	failedListBase      = 24
	failedListAlignment = 32
	failedListSmallest  = 40
	failedListCutLow    = 48
	failedListCutHigh   = 56
	failedListBlocks    = 64

	failedBlockAddress = 0
	failedBlockBytes   = 8
	failedBlockAsked   = 16
	failedBlockTime    = 24
	failedBlockNode    = 32
	failedBlockTag     = 36
	failedBlockList    = 40
	failedBlockTensor  = 44
)

// failures are the two sections.
type failures struct{ records, blocks section }

// parseFailures checks where failures are, if the writer knows of them.
func (h *header) parseFailures(size uint32) error {
	if h.failures = (failures{}); size < failuresHeader {
		return nil
	}
	for i, x := range []struct {
		to        *section
		size, max uint32
	}{{&h.failures.records, failureSize, maxFailures}, {&h.failures.blocks, failedBlockSize, maxFailedBlocks}} {
		b := h.raw[offFailures+i*sectionSize:]
		offset, record, used := le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[16:])
		if used == 0 {
			continue
		}
		if record != x.size || used > x.max || offset < failuresHeader || offset > 1<<32 {
			return fmt.Errorf("%w: the failures", ErrDamaged)
		}
		*x.to = section{int64(offset), used}
	}
	return nil
}

// memory is about what failures take as a copy.
func (f *failures) memory() uint64 {
	return uint64(f.records.used)*2048 + uint64(f.blocks.used)*128
}

// readFailures copies the bytes of failures.
func (r *Reader) readFailures(fd int) error {
	f := &r.header.failures
	for i, x := range []struct {
		section
		size int
	}{{f.records, failureSize}, {f.blocks, failedBlockSize}} {
		size := int(x.used) * x.size
		if cap(r.failures[i]) < size {
			r.failures[i] = make([]byte, size)
		}
		r.failures[i] = r.failures[i][:size]
		if size == 0 {
			continue
		}
		n, err := pread(fd, r.failures[i], x.offset)
		if err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
		if n < size {
			return fmt.Errorf("%w: it is cut off in its failures", ErrDamaged)
		}
	}
	return nil
}

// decodeFailures makes Failures of their bytes. What does not fit together is
// left out.
func (l *Ledger) decodeFailures(records, blocks []byte, c clock) {
	left := len(blocks) / failedBlockSize // they do not lie over each other
	for ; len(records) >= failureSize; records = records[failureSize:] {
		if left -= int(le.Uint32(records[failBlocks:])); left < 0 {
			return
		}
		if f, ok := l.decodeFailure(records, blocks, c); ok {
			l.Failures = append(l.Failures, f)
		}
	}
}

func (l *Ledger) decodeFailure(b, blocks []byte, c clock) (f Failure, ok bool) {
	at := func(n int) uint64 { return le.Uint64(b[n:]) }
	f = Failure{
		Number: at(failNumber), Count: at(failCount), First: c.at(int64(at(failFirst))), Last: c.at(int64(at(failLast))), Time: c.at(int64(at(failTime))),
		Bytes: at(failBytes), Asked: at(failAsked), Page: at(failPage), Limit: at(failLimit),
		Shards: le.Uint32(b[failShards:]), Node: le.Uint32(b[failNode:]), Tag: l.text(le.Uint32(b[failTag:])), Group: le.Uint32(b[failGroup:]), SubDevice: le.Uint32(b[failSubDevice:]), Tensor: l.text(le.Uint32(b[failTensor:])),
		Kind: FailureKind(b[failKind]), BottomUp: b[failBottomUp] != 0, PageKnown: b[failKnown]&1 != 0, ShardsKnown: b[failKnown]&2 != 0, Missed: le.Uint32(b[failMissed:]),
		Program: at(failProgram), Reach: at(failReach), Lowest: at(failLowest), Region: at(failRegion), Needed: at(failNeeded), SeveralDevices: b[failKnown]&4 != 0,
	}
	lists, first, n := int(b[failLists]), uint64(le.Uint32(b[failFirstBlock:])), uint64(le.Uint32(b[failBlocks:]))
	if f.Number == 0 || f.Count == 0 || f.Kind < NoRoom || f.Kind > TraceRefused || lists == 0 || lists > maxFailedLists ||
		(first+n)*failedBlockSize > uint64(len(blocks)) {
		return f, false
	}
	if f.Kind == TraceRefused && (f.Needed <= f.Region || f.Needed > math.MaxUint32) { // tt-metal counts with 32 bits
		return f, false
	}
	if le.Uint32(b[failCores:]) != 0 {
		for _, n := range b[failCores : failCores+4] {
			f.Cores = append(f.Cores, int(n))
		}
	}
	for i := range min(chipsPerLedger, len(l.Chips)) {
		if b[failChips+i/8]>>(i%8)&1 != 0 {
			f.Chips = append(f.Chips, i)
		}
	}
	index := map[uint32]int{}
	for i := range lists {
		x := decodeFailedList(b[failList+i*failedListSize:])
		x.Group, x.Chips = f.Group, f.Chips
		index[uint32(x.Number)] = i
		f.Lists = append(f.Lists, x)
	}
	for blocks = blocks[first*failedBlockSize : (first+n)*failedBlockSize]; len(blocks) > 0; blocks = blocks[failedBlockSize:] {
		i, known := index[le.Uint32(blocks[failedBlockList:])]
		if !known {
			return f, false
		}
		f.Lists[i].Blocks = append(f.Lists[i].Blocks, FailedBlock{
			Address: le.Uint64(blocks[failedBlockAddress:]), Bytes: le.Uint64(blocks[failedBlockBytes:]), Asked: le.Uint64(blocks[failedBlockAsked:]),
			Born: c.at(int64(le.Uint64(blocks[failedBlockTime:]))), Node: le.Uint32(blocks[failedBlockNode:]), Tag: l.text(le.Uint32(blocks[failedBlockTag:])), Tensor: l.text(le.Uint32(blocks[failedBlockTensor:])),
		})
	}
	return f, true
}

func decodeFailedList(b []byte) FailedList {
	return FailedList{Number: int(le.Uint32(b[failedListNumber:])), List: List{
		State: Open, Pool: Pool(b[failedListPool]), Late: b[failedListLate] == 1, Inherited: b[failedListLate] == 2, Banks: le.Uint32(b[failedListBanks:]), Nth: le.Uint32(b[failedListNth:]),
		Capacity: le.Uint64(b[failedListCapacity:]), Base: le.Uint64(b[failedListBase:]), Alignment: le.Uint64(b[failedListAlignment:]), Smallest: le.Uint64(b[failedListSmallest:]),
		CutLow: le.Uint64(b[failedListCutLow:]), CutHigh: le.Uint64(b[failedListCutHigh:]), Live: Sum{Blocks: le.Uint64(b[failedListBlocks:])},
	}}
}
