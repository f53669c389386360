package uprobe

import (
	"maps"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const (
	aList, aListToo, anAllocator = 0x1000, 0x2000, 0x3000
	capacity, base               = 1 << 20, 4096
)

// page runs events of process 7 into new accounts.
func page(events ...event) *process {
	b := newAccounts(1000, budget.Limit{})
	for _, e := range events {
		if e.pid == 0 {
			e.pid = 7
		}
		b.apply(&e)
	}
	return b.processes[7]
}

func made(list, allocator, pool uint64) event {
	return event{kind: listMade, word: [6]uint64{list, capacity, base, 32<<32 | 64, allocator, 8<<32 | pool}}
}

func took(list, at, size, from uint64) event {
	return event{kind: taken, word: [6]uint64{list, size, at, from, base, 8 * size}}
}

func TestBooks(t *testing.T) {
	p := page(
		made(aList, anAllocator, 0), made(aListToo, anAllocator, 1),
		took(aList, 0, 64, capacity), took(aList, 64, 128, capacity-64),
		event{kind: freed, word: [6]uint64{aList, base}},
		event{kind: recorded, word: [6]uint64{0, aList, 99}},
		event{kind: recorded, word: [6]uint64{0, aList, 33}},
	)
	if len(p.Allocators) != 1 || !slices.Equal(p.Allocators[0].Chips, []uint64{33, 99}) {
		t.Fatalf("%+v", p.Allocators)
	}
	dram, l1 := p.Allocators[0].Lists[0], p.Allocators[0].Lists[1]
	want := blocks.Geometry{Pool: model.DRAM, Banks: 8, Base: base, Capacity: capacity, Align: 64, Smallest: 32}
	if dram.Geometry != want || l1.Pool != model.L1 {
		t.Errorf("%+v %v", dram.Geometry, l1.Pool)
	}
	if b, ok := dram.At(base + 64); !ok || b.Size != 128 || b.Asked != 1024 || dram.Usage().Blocks != 1 {
		t.Errorf("%+v %+v", b, dram.Usage())
	}
}

// TestLostDuringTheCopy: a list of which an event was lost while it was copied has
// some of its blocks, and says so; one that cannot be read has none.
func TestLostDuringTheCopy(t *testing.T) {
	p := page(
		event{kind: listFound, word: [6]uint64{aList, capacity, base, 32<<32 | 64, 0x7000, 8 << 32}},
		event{kind: blockFound, word: [6]uint64{aList, 0, 64}},
		event{kind: listWhole, lost: 1, word: [6]uint64{aList, 2}},
	)
	if p.trouble.Kind != "" || p.Blocks() != 1 || p.Exact() || p.lists[aList].Exact() {
		t.Errorf("%+v: %+v", p.trouble, p.Process)
	}
}

func TestBooksNotice(t *testing.T) {
	for what, c := range map[string]struct {
		events []event
		is     func(p *process) bool
	}{
		"another layout, by the first block": {
			[]event{made(aList, anAllocator, 0), took(aList, 0, 64, 12345)},
			func(p *process) bool {
				return p.trouble.Kind == model.AllocatorUnknown && !p.Exact() && p.Blocks() == 0
			},
		},
		"another layout, by the base": {
			[]event{made(aList, anAllocator, 0), {kind: taken, word: [6]uint64{aList, 64, 0, capacity, 77, 64}}},
			func(p *process) bool { return p.trouble.Kind == model.AllocatorUnknown },
		},
		"another layout, by what the kernel saw": {
			[]event{made(aList, anAllocator, 0), {kind: taken, odd: true, word: [6]uint64{aList, 64, 0, capacity, base, 64}}},
			func(p *process) bool { return p.trouble.Kind == model.AllocatorUnknown },
		},
		"a block behind the end": {
			[]event{made(aList, anAllocator, 0), took(aList, capacity, 64, capacity)},
			func(p *process) bool { return p.trouble.Kind == model.AllocatorUnknown },
		},
		"lost events": {
			[]event{made(aList, anAllocator, 0), {kind: taken, lost: 3, word: [6]uint64{aList, 64, 0, capacity, base, 64}}},
			func(p *process) bool { return p.Lost == 3 && !p.Exact() },
		},
		"an allocator that ends": {
			[]event{made(aList, anAllocator, 0), took(aList, 0, 64, capacity), {kind: allocatorGone, word: [6]uint64{anAllocator}}},
			func(p *process) bool { return len(p.Allocators) == 0 && len(p.lists) == 0 },
		},
		"an allocator in the place of another": {
			[]event{
				made(aList, anAllocator, 0), took(aList, 0, 64, capacity),
				{kind: atAllocator, word: [6]uint64{anAllocator}},
				made(aListToo, anAllocator, 0),
			},
			func(p *process) bool { return len(p.Allocators) == 1 && p.Blocks() == 0 && len(p.lists) == 1 },
		},
		"a list in the place of another": {
			[]event{made(aList, anAllocator, 0), took(aList, 0, 64, capacity), made(aList, 0x9999, 0)},
			func(p *process) bool { return len(p.Allocators) == 1 && p.Blocks() == 0 },
		},
		"a pool of the host": {
			[]event{made(aList, anAllocator, 2), took(aList, 0, 64, capacity)},
			func(p *process) bool { return len(p.Allocators) == 0 && p.trouble.Kind == "" },
		},
		"a shrunk list": {
			[]event{made(aList, anAllocator, 1), {kind: shrunk, word: [6]uint64{aList, 4096, 1}}, took(aList, 8192, 64, capacity-4096)},
			func(p *process) bool {
				space, known := p.Allocators[0].Lists[0].Space()
				return known && space.Free == capacity-4096-64
			},
		},
		"a list that is its own size again": {
			[]event{made(aList, anAllocator, 1), {kind: shrunk, word: [6]uint64{aList, 4096, 1}}, {kind: resized, word: [6]uint64{aList}}},
			func(p *process) bool {
				space, known := p.Allocators[0].Lists[0].Space()
				return known && space.Free == capacity
			},
		},
		"a chip that was opened": {
			[]event{{kind: providerMade, word: [6]uint64{0x5000, 42, 0}}},
			func(p *process) bool { return slices.Contains(p.Seen, 42) && p.providers[0x5000] == 42 },
		},
		"a list found in use": {
			[]event{
				{kind: listFound, word: [6]uint64{aList, capacity, base, 32<<32 | 64, 0x7000, 8 << 32}},
				{kind: blockFound, word: [6]uint64{aList, 64, 128}},
				{kind: listWhole, word: [6]uint64{aList, 1}},
				took(aList, 1024, 64, 5000),
			},
			func(p *process) bool { return p.Late && p.Allocators[0].Lists[0].Exact() && p.Blocks() == 2 },
		},
		"a list found in use, copied in part": {
			[]event{
				{kind: listFound, word: [6]uint64{aList, capacity, base, 32<<32 | 64, 0x7000, 8 << 32}},
				{kind: blockFound, word: [6]uint64{aList, 64, 128}},
				{kind: listWhole, word: [6]uint64{aList, 2}},
			},
			func(p *process) bool { return p.trouble.Kind == model.AllocatorUnknown },
		},
		"another program": {
			[]event{made(aList, anAllocator, 0), took(aList, 0, 64, capacity), {kind: execed}},
			func(p *process) bool { return p.Blocks() == 0 && !p.Late },
		},
		"a process that ended": {
			[]event{made(aList, anAllocator, 0), {kind: exited}},
			func(p *process) bool { return p == nil },
		},
	} {
		t.Run(what, func(t *testing.T) {
			if p := page(c.events...); !c.is(p) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestBooksOfAChild(t *testing.T) {
	found := event{pid: 8, kind: listFound, word: [6]uint64{aList, capacity, base, 32<<32 | 64, 0x7000, 8 << 32}}
	copied := event{pid: 8, kind: blockFound, word: [6]uint64{aList, 0, 64}}
	whole := event{pid: 8, kind: listWhole, word: [6]uint64{aList, 1}}
	own := took(aList, 512, 64, 5000)
	own.pid = 8
	b := newAccounts(1000, budget.Limit{})
	for _, e := range []event{
		{pid: 7, kind: forked, word: [6]uint64{1, 0}},
		{pid: 7, kind: listMade, word: made(aList, anAllocator, 0).word},
		{pid: 7, kind: taken, word: took(aList, 0, 64, capacity).word},
		{pid: 8, kind: forked, word: [6]uint64{7, 50_000_000}},
		found, copied, whole, own,
	} {
		b.apply(&e)
	}
	child := b.processes[8]
	if child.Start != 5 || child.Blocks() != 1 || !child.Exact() {
		t.Errorf("the child: start %d, %d blocks, exact %v", child.Start, child.Blocks(), child.Exact())
	}
	if _, known := child.lists[aList].Space(); known {
		t.Error("what is free in a copy is told")
	}
	if b.processes[7].Blocks() != 1 {
		t.Error("the parent lost its block")
	}
}

func TestPrograms(t *testing.T) {
	laid := func(kind kind, program, address, bytes, n uint64) event {
		return event{kind: kind, word: [6]uint64{program, address, bytes, n}}
	}
	p := page(
		laid(cbMarked, 1, 4096, 64, 0), laid(cbMarked, 1, 4160, 128, 1), laid(cbMarked, 1, 4096, 64, 2), // the same on other cores
		laid(cbTracked, 2, 4096, 1024, 0),
		laid(cbMarked, 3, 4096, 9999, 0), event{kind: programGone, word: [6]uint64{3}}, event{kind: programGone, word: [6]uint64{4}},
	)
	if len(p.Programs) != 2 || *p.Programs[0] != (blocks.Program{Base: 4096, End: 4288}) || *p.Programs[1] != (blocks.Program{Base: 4096, End: 5120}) {
		t.Errorf("%+v", p.Programs)
	}
	if reach, ok := p.Reach(); !ok || reach.End != 5120 {
		t.Errorf("%+v", reach)
	}
	again := page(laid(cbMarked, 1, 4096, 4096, 0), laid(cbMarked, 1, 4096, 64, 0)) // laid out again
	if reach, _ := again.Reach(); reach.End != 4160 {
		t.Errorf("%+v", reach)
	}
	if _, ok := page(event{kind: execed}, event{kind: freed}).Reach(); ok {
		t.Error("no program, and yet circular buffers")
	}
}

func TestTooManyBlocks(t *testing.T) {
	b := newAccounts(2, budget.Limit{})
	e := made(aList, anAllocator, 0)
	b.apply(&e)
	for i := range uint64(4) {
		e := took(aList, i*64, 64, capacity)
		b.apply(&e)
	}
	if p := b.processes[0]; p.trouble.Kind != model.TooManyBlocks || p.Blocks() != 0 || p.Exact() {
		t.Errorf("%+v", p)
	}
}

// The sweep reads how many events were lost from the kernel, and may do so
// before events that are older have been read.
func TestLostIsCountedOnce(t *testing.T) {
	b := newAccounts(1000, budget.Limit{})
	e := made(aList, anAllocator, 0)
	b.apply(&e)
	p := b.processes[0]
	p.Lost, p.lost16 = 5, 5 // as the sweep does
	for _, c := range []struct {
		lost uint16
		want uint64
	}{{0, 5}, {4, 5}, {5, 5}, {6, 6}, {9, 9}} {
		e := event{kind: cleared, lost: c.lost, word: [6]uint64{aList}}
		if b.apply(&e); p.Lost != c.want {
			t.Errorf("after an event that says %d: %d lost, want %d", c.lost, p.Lost, c.want)
		}
	}
	p.Lost, p.lost16 = 1<<16-1, 1<<16-1
	e = event{kind: cleared, lost: 1, word: [6]uint64{aList}} // the low bits have wrapped
	if b.apply(&e); p.Lost != 1<<16+1 {
		t.Errorf("behind a wrap: %d lost", p.Lost)
	}
}

// A process that makes more than any program has is given up, and costs no more.
func TestWhatAProcessCanMakeUsKeep(t *testing.T) {
	for what, next := range map[string]func(i uint64) event{
		"lists":     func(i uint64) event { return made(aListToo+i*64, anAllocator+i*64, 0) },
		"providers": func(i uint64) event { return event{kind: providerMade, word: [6]uint64{0x5000 + i*64, 42}} },
		"chips":     func(i uint64) event { return event{kind: providerMade, word: [6]uint64{0x5000, i}} },
		"chips of a list": func(i uint64) event {
			return event{kind: recorded, word: [6]uint64{0, aList, i}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newAccounts(1000, budget.Limit{})
			e := made(aList, anAllocator, 0)
			b.apply(&e)
			p := b.processes[0]
			for i := range uint64(maxLists + maxChips) {
				e := next(i)
				b.apply(&e)
			}
			if p.trouble.Kind != model.AllocatorUnknown || len(p.lists)+len(p.providers)+len(p.Seen)+len(p.Allocators) > 0 {
				t.Errorf("trouble %+v, %d lists, %d providers, %d chips", p.trouble, len(p.lists), len(p.providers), len(p.Seen))
			}
		})
	}
	b := newAccounts(2, budget.Limit{})
	for _, e := range []event{
		{kind: listFound, word: [6]uint64{aList, capacity, base, 32<<32 | 64, 0x7000, 8 << 32}},
		{kind: blockFound, word: [6]uint64{aList, 0, 64}},
		{kind: blockFound, word: [6]uint64{aList, 64, 64}},
		{kind: blockFound, word: [6]uint64{aList, 128, 64}},
	} {
		b.apply(&e)
	}
	if p := b.processes[0]; p.trouble.Kind != model.TooManyBlocks {
		t.Errorf("blocks that were found: %+v", p.trouble)
	}
}

// TestBooksOfSubDevices: the allocators that are made for sub-devices have their
// numbers, unless one of them gets none.
func TestBooksOfSubDevices(t *testing.T) {
	none := func(n uint64) event { // tt-metal subtracts what it reserves from no DRAM
		e := made(0x1000*n, n, 0)
		e.word[1] = ^uint64(base) + 1
		return e
	}
	divide := func(n uint64) event {
		e := event{kind: subDevicesMade}
		about[workEvent](&e).Value = n
		return e
	}
	for _, c := range []struct {
		name   string
		events []event
		want   []int // -1: of the device, or not known
	}{
		{"two", []event{made(0x1000, 1, 0), divide(2), none(2), made(0x2100, 2, 1), none(3)}, []int{-1, 0, 1}},
		{"two managers", []event{divide(2), none(1), none(2), divide(2), none(3), none(4)}, []int{0, 1, 0, 1}},
		{"one of three has no worker cores", []event{divide(3), none(1), none(2), made(0x3000, 3, 0)}, []int{-1, -1, -1}},
		{"without L1 of their own", []event{divide(2), made(0x1000, 1, 0), none(2), none(3)}, []int{-1, -1, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int
			for _, a := range page(c.events...).Allocators {
				n := -1
				if a.SubDevice != nil {
					n = *a.SubDevice
				}
				got = append(got, n)
				if l := a.Lists[0]; n >= 0 && l.Capacity != 0 {
					t.Errorf("sub-device %d has %d bytes of DRAM", n, l.Capacity)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestFailuresOfOthers: a user whose programs fail as often as they can, on ever
// other lines, does not keep the failures of others from being seen.
func TestFailuresOfOthers(t *testing.T) {
	b := newAccounts(1000, budget.Limit{})
	fails := func(pid uint32, uid, line int) {
		b.process(pid).uid = uid
		if b.process(pid).lists[aList] == nil {
			e := made(aList, anAllocator, 0)
			e.pid = pid
			b.apply(&e)
		}
		e := event{kind: noRoom, pid: pid, stack: []ledgerfile.Frame{{File: "a.py", Line: line}}}
		*about[noRoomEvent](&e) = noRoomEvent{List: aList, Asked: 8 * capacity * 2, Padded: 8 * capacity * 2, Page: 64}
		b.apply(&e)
	}
	for i := range 10_000 {
		fails(uint32(100+i%50), 1000, i%16)
	}
	fails(7, 2000, 1)
	count, uncounted := map[int]int{}, map[int]bool{}
	for _, r := range b.failures.list {
		count[r.Process.UID]++
		uncounted[r.Process.UID] = uncounted[r.Process.UID] || r.Uncounted
	}
	if !uncounted[1000] || uncounted[2000] {
		t.Errorf("failures that are in no record, by user: %v", uncounted)
	}
	if count[1000] != maxWaitingOfUser || count[2000] != 1 || b.failures.total != 10_001 || b.failures.dropped == 0 {
		t.Errorf("%v wait, %d failed, %d were dropped", count, b.failures.total, b.failures.dropped)
	}
}

// TestReasonsOfOneLine: requests of one line that fail for different reasons before the
// failures are collected are records of their own.
func TestReasonsOfOneLine(t *testing.T) {
	b := newAccounts(1000, budget.Limit{})
	fails := func(bankBytes uint64) event {
		e := event{kind: noRoom, stack: []ledgerfile.Frame{{File: "a.py", Line: 3}}}
		*about[noRoomEvent](&e) = noRoomEvent{List: aList, Asked: 8 * bankBytes, Padded: 8 * bankBytes, Page: 64}
		return e
	}
	for _, e := range []event{
		made(aList, anAllocator, 0), fails(2 * capacity), took(aList, 64, 64, capacity), fails(capacity), fails(2 * capacity),
		fails(capacity - 64), fails(capacity), fails(capacity),
	} {
		b.apply(&e)
	}
	got := map[failure.Cause]uint64{}
	for _, r := range b.failures.list {
		r.Judge()
		got[r.Verdict.Cause] += r.Count
	}
	want := map[failure.Cause]uint64{failure.TooLarge: 2, failure.Full: 3, failure.Fragmented: 1}
	if !maps.Equal(got, want) || len(b.failures.list) != len(want) {
		t.Errorf("%v in %d records, want %v", got, len(b.failures.list), want)
	}
}
