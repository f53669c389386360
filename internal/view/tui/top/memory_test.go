package top

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	allocators "github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// openMem shows a host as ttmon mem does, after some seconds.
func openMem(t *testing.T, seconds, n, w, h int, only ...string) *stage {
	t.Helper()
	return openMemOf(t, Options{Config: config.Default(), Memory: true}, seconds, n, w, h, only...)
}

func openMemOf(t *testing.T, o Options, seconds, n, w, h int, only ...string) *stage {
	t.Helper()
	o.Config.Top.Devices.Only = only
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{t: t, s: s, g: cells.NewGrid(w, h), n: n}
	st.send(tui.Resize{W: w, H: h})
	st.run(seconds)
	return st
}

func TestMemoryGolden(t *testing.T) {
	for _, m := range []struct {
		name  string
		keys  []tui.Key
		after []tui.Key // some seconds later
	}{
		{"overview", nil, nil},
		{"chip", []tui.Key{"enter"}, nil},
		{"l1", []tui.Key{"down", "enter", "c", "+"}, nil},
		{"marked", []tui.Key{"d"}, []tui.Key{"enter"}},
		{"holder", []tui.Key{"enter", "enter"}, nil},
		{"help", []tui.Key{"?"}, nil},
	} {
		t.Run(m.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
				for _, n := range []int{0, 1, 4, 8, 32} {
					st := openMem(t, 120, n, size[0], size[1]).keys(m.keys...)
					st.run(10)
					st.keys(m.after...)
					fmt.Fprintf(&b, "-- %dx%d, %d devices --\n%s", size[0], size[1], n, st.draw())
				}
			}
			golden.Check(t, filepath.Join("testdata", "memory-"+m.name+".txt"), []byte(b.String()))
		})
	}
}

// Every key of the page does something somewhere.
func TestEveryMemoryKeyDoesSomething(t *testing.T) {
	situations := []func(*stage){
		func(st *stage) {},
		func(st *stage) { st.keys("down", "down") },
		func(st *stage) { st.keys("enter") },
		func(st *stage) { st.keys("enter", ",") },
		func(st *stage) { st.keys("end", "up", "enter", "down") },
		func(st *stage) { st.keys("enter", "enter") },
		func(st *stage) { st.keys("f1", "down") },
	}
	keys := []tui.Key{"up", "down", "pgup", "pgdn", "home", "end", " "}
	for _, b := range MemoryKeys() {
		keys = append(keys, b.Keys...)
	}
	look := func(prepare func(*stage), k tui.Key) (string, bool) {
		st := openMem(t, 100, 4, 100, 20)
		prepare(st)
		st.effects = nil
		if k != "" {
			st.send(k)
		}
		st.run(1) // peaks and marks show with the next sample
		return st.draw() + styles(st.g), len(st.effects) > 0
	}
	for _, k := range keys {
		done := false
		for _, prepare := range situations {
			before, _ := look(prepare, "")
			after, effects := look(prepare, k)
			done = done || effects || before != after
		}
		if !done {
			t.Errorf("%s does nothing anywhere", k)
		}
	}
}

func TestOneChipOpensAtOnce(t *testing.T) {
	if st := openMem(t, 5, 1, 80, 24); !st.has("who holds DRAM") {
		t.Error(st.draw())
	}
	if st := openMem(t, 5, 4, 80, 24, "1"); !st.has("who holds DRAM") || !st.has("device 1 p150a") {
		t.Error(st.draw())
	}
	st := openMem(t, 5, 4, 80, 24, "0")
	if st.has("who holds") || !st.has("0 n300 L") || !st.has("0 n300 R") || st.has("p150a") {
		t.Errorf("both chips of device 0, and nothing else:\n%s", st.draw())
	}
	st.effects = nil
	if st.keys("esc"); len(st.effects) != 0 || !st.has("q quits") {
		t.Error("esc quits")
	}
	if st.keys("q"); len(st.effects) != 1 {
		t.Error("q does not quit")
	}
}

// What a chip counts and no process has has a row of its own.
func TestMemoryOfOthers(t *testing.T) {
	st := openMem(t, 5, 1, 100, 30)
	s := tuitest.Host(1, 200)
	used := &s.Devices[0].Chips[0].Memory.Pools[model.DRAM].Used
	*used = model.AddUp(*used, model.ExactBytes(5<<20))
	st.send(tui.Sample{Snapshot: s})
	if !st.has("(others)") {
		t.Error(st.draw())
	}
}

func TestMemoryDeniedAndDead(t *testing.T) {
	st := openMem(t, 5, 4, 110, 30, "3")
	if !st.has("denied") || !st.has("memory of other users is hidden") || !st.has("190011 bob") {
		t.Error(st.draw())
	}
	st = openMem(t, 5, 4, 110, 30, "2")
	if !st.has("(dead) 4242 python") || !st.has("not counted, wrote 3 h ago") {
		t.Error(st.draw())
	}
}

func TestMemoryOfAProcess(t *testing.T) {
	st := openMem(t, 5, 4, 110, 40, "1")
	st.effects = nil
	st.keys("enter")
	want := act.Inspect{Target: act.Target{PID: 182034, StartTicks: 182034 * 7}}
	if len(st.effects) != 1 || st.effects[0] != want {
		t.Fatalf("effects %v", st.effects)
	}
	st.send(act.Inspected{Target: want.Target, Buffers: []act.Buffer{
		{Device: 1, Pool: "dram", Bytes: 1 << 20, Age: time.Hour},
		{Device: 1, Pool: "dram", Bytes: 1 << 30, Age: time.Minute, Note: "matmul.cpp:12"},
		{Device: 0, Pool: "dram", Bytes: 1 << 34},
	}})
	out := st.draw()
	large, small := strings.Index(out, "1.0 GiB  "), strings.Index(out, "1.0 MiB  ")
	if large < 0 || small < large || !strings.Contains(out, "matmul.cpp:12") || strings.Contains(out, "16.0 GiB") {
		t.Errorf("buffers of this chip, the largest first:\n%s", out)
	}
	st.send(act.Inspected{Target: act.Target{PID: 1}, BufferErr: act.ErrUnknown})
	if !st.has("matmul.cpp:12") {
		t.Error("the answer about another process was taken")
	}
	st.n = 0
	st.run(1)
	if !st.has("is gone") && !st.has("no device to show") {
		t.Error(st.draw())
	}
}

// An earlier moment shows what was held then, without what has changed since.
func TestMemoryLookBack(t *testing.T) {
	st := openMem(t, 60, 4, 120, 30)
	old := tuitest.Host(2, 3)
	st.keys("d", "<")
	load, ok := st.effects[len(st.effects)-1].(act.Load)
	if !ok {
		t.Fatalf("effects %v", st.effects)
	}
	st.send(act.Loaded{At: load.At, Snapshot: old})
	st.run(1)
	if !st.has(" PAST ") || st.has("2 n150") || !st.has("1 p150a") {
		t.Errorf("not the two devices of then:\n%s", st.draw())
	}
	if st.has("since the mark") {
		t.Errorf("changes of the present stand beside figures of the past:\n%s", st.draw())
	}
	st.keys("esc")
	if st.has(" PAST ") || !st.has("2 n150") || !st.has("since the mark at 12:0") {
		t.Errorf("Esc does not return to the present:\n%s", st.draw())
	}
}

// watched is a host with one device whose first process is seen by uprobes.
func watched(second int) *model.Snapshot {
	s := tuitest.Host(1, second)
	for i := range s.Processes[0].Devices {
		s.Processes[0].Devices[i].Source = model.FromUprobe
	}
	return s
}

// allocator has two blocks in a bank of four GiB, on the chip of watched.
func allocator() *allocators.Process {
	const gib = 1 << 30
	l := allocators.NewList(allocators.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4 * gib, Align: 32, Smallest: 32}, allocators.FromStart)
	l.Alloc(allocators.Block{Addr: 0, Size: gib, Asked: 8 * gib})
	l.Alloc(allocators.Block{Addr: 2 * gib, Size: gib / 2, Asked: 4 * gib})
	id, _ := watched(0).Devices[0].Chips[0].ID.Get()
	return &allocators.Process{PID: 182034, Allocators: []*allocators.Allocator{{Chips: []uint64{id}, Lists: []*allocators.List{l}}}}
}

// A map is of the moment that is shown, forth and back.
func TestBankMapOfARecording(t *testing.T) {
	st := openMemOf(t, Options{Config: config.Default(), Memory: true, Recorded: true}, 0, 1, 120, 40)
	for i, second := range []int{5, 6, 3, 3} {
		st.send(tui.Sample{Snapshot: watched(second)})
		if want := min(i+1, 3); len(st.effects) != want {
			t.Errorf("after second %d it has asked %d times, want %d", second, len(st.effects), want)
		}
	}
}

// The page requests the map of a chip whose allocators are watched, again now and then,
// and draws it with what would fit.
func TestBankMap(t *testing.T) {
	st := openMem(t, 0, 1, 120, 40)
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
