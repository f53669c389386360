package mem

import (
	"testing"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// watched is a host with one device whose first process is seen by uprobes.
func watched(second int) *model.Snapshot {
	s := tuitest.Host(1, second)
	for i := range s.Processes[0].Devices {
		s.Processes[0].Devices[i].Source = model.FromUprobe
	}
	return s
}

// allocator has two blocks in a bank of four GiB, on the chip of watched.
func allocator() *blocks.Process {
	const gib = 1 << 30
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4 * gib, Align: 32, Smallest: 32}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: gib, Asked: 8 * gib})
	l.Alloc(blocks.Block{Addr: 2 * gib, Size: gib / 2, Asked: 4 * gib})
	id, _ := watched(0).Devices[0].Chips[0].ID.Get()
	return &blocks.Process{PID: 182034, Allocators: []*blocks.Allocator{{Chips: []uint64{id}, Lists: []*blocks.List{l}}}}
}

// TestBankMapOfARecording: a map is of the moment that is shown, forth and back.
func TestBankMapOfARecording(t *testing.T) {
	st := openAfter(t, 0, 1, 120, 40)
	st.s.o.Recorded = true
	for i, second := range []int{5, 6, 3, 3} {
		st.send(tui.Sample{Snapshot: watched(second)})
		if want := min(i+1, 3); len(st.effects) != want {
			t.Errorf("after second %d it has asked %d times, want %d", second, len(st.effects), want)
		}
	}
}

// TestBankMap: the screen requests the map of a chip whose allocators are
// watched, again now and then, and draws it with what would fit.
func TestBankMap(t *testing.T) {
	st := openAfter(t, 0, 1, 120, 40)
	st.send(tui.Sample{Snapshot: watched(0)})
	if len(st.effects) != 1 {
		t.Fatalf("asked for %+v", st.effects)
	}
	ask, ok := st.effects[0].(act.Map)
	if !ok || ask.Target.PID != 182034 {
		t.Fatalf("asked for %+v", st.effects)
	}
	st.send(tui.Sample{Snapshot: watched(1)})
	if len(st.effects) != 1 {
		t.Error("asked again at once")
	}
	if st.has("would 512 MiB fit?") {
		t.Error("an answer before there is one")
	}
	st.send(act.Mapped{Target: ask.Target, Blocks: allocator()})
	for _, text := range []string{"8 banks of 4.0 GiB", "largest hole 1.5 GiB a bank", "would 512 MiB fit?  yes", "uprobes   peak", "█████"} {
		if !st.has(text) {
			t.Errorf("no %q:\n%s", text, st.draw())
		}
	}
	st.send(tui.Sample{Snapshot: watched(3)})
	if len(st.effects) != 2 {
		t.Error("never asked again")
	}
	st.send(act.Mapped{Target: act.Target{PID: 1}, Blocks: nil})
	if !st.has("would 512 MiB fit?") {
		t.Error("an answer about another process was shown")
	}
	st.send(tui.Sample{Snapshot: tuitest.Host(1, 9)}) // no allocator is watched any more
	if st.has("would 512 MiB fit?") {
		t.Errorf("a map of before:\n%s", st.draw())
	}
}
