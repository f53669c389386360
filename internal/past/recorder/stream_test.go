package recorder

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

var streamedList = changes.List{ID: 4, Allocator: 1, Pool: "l1", Chips: []uint64{77}, Geometry: blocks.Geometry{Pool: model.L1, Banks: 2, Capacity: 1 << 20}}

// told makes a batch of changes of process 42 that follow each other.
func told(n uint64, at time.Time, list ...changes.Change) *changes.Batch {
	for i := range list {
		list[i].N, list[i].PID, list[i].Time = n+uint64(i), 42, at.Add(time.Duration(i)*time.Millisecond).UnixNano()
		if list[i].List == 0 {
			list[i].List = 4
		}
	}
	return &changes.Batch{Changes: list}
}

func took(addr, size uint64) changes.Change {
	return changes.Change{Kind: changes.Alloc, Addr: addr, Size: size}
}

func gave(addr uint64) changes.Change { return changes.Change{Kind: changes.Free, Addr: addr} }

func state(n, missed uint64, list ...blocks.Block) *changes.Batch {
	return &changes.Batch{States: []*changes.State{{PID: 42, Start: 7, Name: "train", N: n, Missed: missed, Lists: []changes.Held{{List: streamedList, Blocks: list}}}}}
}

// What a ttmond tells is recorded change by change, in the place of what was
// compared before.
func TestChanges(t *testing.T) {
	r := newRecorded(t, tuitest.Start)
	at := func(s int) time.Time { return tuitest.Start.Add(time.Duration(s) * time.Second) }
	held := blocks.NewList(streamedList.Geometry, blocks.FromStart)
	held.Alloc(blocks.Block{Addr: 0, Size: 64, Born: at(0).UnixNano()})
	r.Blocks([]*blocks.Process{{PID: 42, Start: 7, Allocators: []*blocks.Allocator{{ID: 1, Lists: []*blocks.List{held}}}}}, at(1))
	r.Changes(state(5, 0, blocks.Block{Addr: 0, Size: 64, Born: at(0).UnixNano()}), at(2))
	r.Changes(told(6, at(3), took(4096, 64), gave(4096), took(4096, 128), gave(0)), at(3))
	r.Changes(told(8, at(4), took(4096, 128), gave(0)), at(4)) // again: a state had them
	r.Changes(told(10, at(5), changes.Change{Kind: changes.Watched}, changes.Change{Kind: changes.Lost, Size: 3}), at(5))
	r.Changes(told(12, at(6), changes.Change{Kind: changes.Ended, Why: "it has ended"}), at(6))
	list, c := r.end(t)
	if a, f, e := count(list, recording.KindAlloc), count(list, recording.KindFree), count(list, recording.KindEnded); a != 4 || f != 2 || e != 2 {
		t.Errorf("%d allocations, %d frees, %d ended", a, f, e)
	}
	var methods []recording.Method
	for _, x := range list {
		if x.Kind == recording.KindProcess {
			methods = append(methods, x.Process.Method)
		}
		if x.Kind == recording.KindLost && x.Lost != 3 {
			t.Errorf("lost %d", x.Lost)
		}
	}
	if len(methods) != 3 || methods[0] != recording.BySampling || methods[1] != recording.ByUprobe {
		t.Errorf("methods %v", methods)
	}
	if len(c.Processes()) != 0 {
		t.Errorf("still there: %+v", c.Processes())
	}
}

// After a gap the recording has what holds, and how much was missed; without
// one a state changes nothing.
func TestChangesMissed(t *testing.T) {
	r := newRecorded(t, tuitest.Start)
	at := func(s int) time.Time { return tuitest.Start.Add(time.Duration(s) * time.Second) }
	r.Changes(state(0, 0), at(0))
	r.Changes(told(1, at(1), took(0, 64), took(64, 64), took(128, 64)), at(1))
	r.Changes(state(3, 0), at(2)) // a connection that was lost, and nothing meanwhile
	r.Changes(state(20, 0, blocks.Block{Addr: 64, Size: 64}, blocks.Block{Addr: 128, Size: 32}, blocks.Block{Addr: 256, Size: 64}), at(3))
	r.Changes(told(21, at(4), gave(64)), at(4))
	r.Changes(state(30, 9, blocks.Block{Addr: 256, Size: 64}), at(5))
	list, c := r.end(t)
	p := c.Blocks(c.Processes()[0].ID)
	if p.Lost != 17+9 || p.Exact() || r.Missed != p.Lost {
		t.Errorf("lost %d, exact %v", p.Lost, p.Exact())
	}
	l := p.Allocators[0].Lists[0]
	if b, ok := l.At(256); l.Usage().Blocks != 1 || !ok || b.Size != 64 {
		t.Errorf("%+v holds %+v", l, l.Usage())
	}
	if n := count(list, recording.KindProcess); n != 1 {
		t.Errorf("the process is told %d times", n)
	}
}

// Where two tell of one process, the rule of figures decides who is recorded.
func TestWhoTellsBetter(t *testing.T) {
	for _, c := range []struct {
		name                string
		first, second       origin
		firstLate, nextLate bool
		replaced            bool
	}{
		{"a ledger stays beside a stream", fromLedger, fromStream, false, false, false},
		{"a late ledger gives way to a whole stream", fromLedger, fromStream, true, false, true},
		{"a whole stream stays beside a late ledger", fromStream, fromLedger, false, true, false},
		{"a ledger takes the place of a stream", fromStream, fromLedger, false, false, true},
		{"of two late ones the ledger", fromStream, fromLedger, true, true, true},
		{"a stream takes the place of looks", fromBlocks, fromStream, false, false, true},
		{"and stays beside them", fromStream, fromBlocks, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorded(t, tuitest.Start)
			if r.process("first", c.first, tuitest.Start, recording.Process{PID: 42, Late: c.firstLate}) == nil {
				t.Fatal("the first is not recorded")
			}
			second := r.process("second", c.second, tuitest.Start, recording.Process{PID: 42, Late: c.nextLate})
			if (second != nil) != c.replaced || (r.processes["first"] == nil) != c.replaced {
				t.Errorf("replaced: %v, want %v", second != nil, c.replaced)
			}
			if r.process("other", c.second, tuitest.Start, recording.Process{PID: 43}) == nil {
				t.Error("another process is not recorded")
			}
			r.end(t)
		})
	}
}
