package ledgerfile

import (
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

// addFailures makes Failures of their records. What does not fit together is left out.
func (l *Ledger) addFailures(records []failureRecord, blocks []failedBlockRecord, c clock) {
	left := len(blocks) // they do not lie over each other
	for i := range records {
		if left -= int(records[i].Blocks); left < 0 {
			return
		}
		if f, ok := l.failure(&records[i], blocks, c); ok {
			l.Failures = append(l.Failures, f)
		}
	}
}

// What is known of the buffer that a request was for, and of its device.
const (
	knowsPage uint8 = 1 << iota
	knowsShards
	severalDevices
)

func (l *Ledger) failure(r *failureRecord, blocks []failedBlockRecord, c clock) (f Failure, ok bool) {
	first, end := uint64(r.FirstBlock), uint64(r.FirstBlock)+uint64(r.Blocks)
	if r.Number == 0 || r.Count == 0 || r.Kind < NoRoom || r.Kind > TraceRefused || r.Lists == 0 || r.Lists > maxFailedLists || end > uint64(len(blocks)) {
		return f, false
	}
	if r.Kind == TraceRefused && (r.Needed <= r.Region || r.Needed > math.MaxUint32) { // tt-metal counts with 32 bits
		return f, false
	}
	f = Failure{
		Number: r.Number, Count: r.Count, First: c.at(r.First), Last: c.at(r.Last), Time: c.at(r.Time), Bytes: r.Bytes, Asked: r.Asked, Page: r.Page,
		Limit: r.Limit, Shards: r.Shards, Node: r.Node, Tag: l.Text(r.Tag), Group: r.Group, SubDevice: r.SubDevice, Tensor: l.Text(r.Tensor), Kind: r.Kind,
		BottomUp: r.BottomUp != 0, PageKnown: r.Known&knowsPage != 0, ShardsKnown: r.Known&knowsShards != 0, SeveralDevices: r.Known&severalDevices != 0,
		Missed: r.Missed, Program: r.Program, Reach: r.Reach, Lowest: r.Lowest, Region: r.Region, Needed: r.Needed, Chips: r.Chips.numbers(len(l.Chips)),
	}
	if r.Cores != [4]uint8{} {
		for _, n := range r.Cores {
			f.Cores = append(f.Cores, int(n))
		}
	}
	index := map[uint32]int{}
	for i := range r.List[:r.Lists] {
		x := failedList(&r.List[i])
		x.Group, x.Chips = f.Group, f.Chips
		index[uint32(x.Number)] = i
		f.Lists = append(f.Lists, x)
	}
	for _, b := range blocks[first:end] {
		i, known := index[b.List]
		if !known {
			return f, false
		}
		f.Lists[i].Blocks = append(f.Lists[i].Blocks, FailedBlock{
			Address: b.Address, Bytes: b.Bytes, Asked: b.Asked, Born: c.at(b.Time), Node: b.Node, Tag: l.Text(b.Tag), Tensor: l.Text(b.Tensor),
		})
	}
	return f, true
}

func failedList(r *failedListRecord) FailedList {
	return FailedList{Number: int(r.List), List: List{
		State: Open, Pool: r.Pool, Late: r.Late == 1, Inherited: r.Late == 2, Banks: r.Banks, Nth: r.Nth, Capacity: r.Capacity, Base: r.Base,
		Alignment: r.Alignment, Smallest: r.Smallest, CutLow: r.CutLow, CutHigh: r.CutHigh, Live: Sum{Blocks: r.Blocks},
	}}
}
