package shm

import (
	"fmt"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

func slotAtTime(at time.Time, dram uint64) Slot {
	return Slot{PID: 7, Name: "python", Updated: at, Bytes: [numPools]uint64{dram}}
}

func TestInherit(t *testing.T) {
	start := time.Unix(1_790_000_000, 0)
	before, after := start.Add(-time.Hour), start.Add(time.Hour)
	state := func(v verdict, slot Slot) *slotState { return &slotState{verdict: v, slot: slot} }
	renamed := slotAtTime(after, 12)
	renamed.Name = "other"
	tests := []struct {
		name   string
		old    *slotState
		slot   Slot
		leaked bool
		want   uint64 // baseline; 0 is none
		exact  bool
	}{
		{"its own", nil, slotAtTime(after, 5), true, 0, false},
		{"written before it started", nil, slotAtTime(before, 5), true, 5, true},
		{"the clock was set, for no process died here", nil, slotAtTime(before, 5), false, 0, false},
		{"seen dead, then written", state(dead, slotAtTime(before, 5)), slotAtTime(after, 12), true, 5, true},
		{"seen dead, though the count does not say so", state(dead, slotAtTime(before, 5)), slotAtTime(after, 12), false, 5, true},
		{"seen alive, then written", state(live, slotAtTime(before, 5)), slotAtTime(after, 12), true, 5, false},
		{"claimed again", state(dead, slotAtTime(before, 5)), renamed, true, 0, false},
		{"another pid's", state(dead, Slot{PID: 8, Name: "python", Updated: before}), slotAtTime(after, 12), true, 0, false},
		{"no time at all", nil, slotAtTime(time.Time{}, 5), true, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := findBaseline(tt.old, tt.slot, start, tt.leaked)
			if (got != nil) != (tt.want != 0) {
				t.Errorf("%s: %+v", tt.name, got)
			} else if got != nil && (got.slot.Bytes[0] != tt.want || got.exact != tt.exact) {
				t.Errorf("%s: %d, exact %v", tt.name, got.slot.Bytes[0], got.exact)
			}
		})
	}
}

func TestCheckFigure(t *testing.T) {
	for _, tt := range []struct {
		v, capacity uint64
		ok          bool
	}{
		{0, 0, true},
		{impossible, 0, true},
		{impossible + 1, 0, false},
		{1050, 1000, true},
		{1051, 1000, false},
		{^uint64(0), ^uint64(0), false},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.v, tt.capacity), func(t *testing.T) {
			got, doubt := checkFigure(model.ExactBytes(tt.v), tt.capacity)
			if got.Known() != tt.ok || (doubt == "") != tt.ok {
				t.Errorf("%+v %s", got, doubt)
			}
		})
	}
	if got, doubt := checkFigure(model.NoBytes(model.Stale), 1); got.Status() != model.Stale || doubt != "" {
		t.Errorf("a missing figure became %+v", got)
	}
}

// A read during which slots change owners is repeated, and in the end says so.
func TestSameOwners(t *testing.T) {
	a := newImage(3, 1).slot(0, 5, "a", time.Unix(1, 0), 7)
	b := newImage(3, 1).slot(0, 5, "a", time.Unix(2, 0), 8)
	if !sameOwners(a, b) {
		t.Error("counters moved: that is not another owner")
	}
	for name, other := range map[string]image{
		"pid": newImage(3, 1).slot(0, 6, "a", time.Unix(1, 0), 7), "name": newImage(3, 1).slot(0, 5, "b", time.Unix(1, 0), 7),
		"version": newImage(4, 1).slot(0, 5, "a", time.Unix(1, 0), 7), "length": a[:Size-1],
	} {
		t.Run(name, func(t *testing.T) {
			if sameOwners(a, other) {
				t.Errorf("another %s passed", name)
			}
		})
	}
}

// That slots kept changing is said until they no longer do.
func TestTornOnce(t *testing.T) {
	s := newScene(t)
	write(t, regionOne, string(newImage(3, 1)))
	s.read()
	for _, reg := range s.r.regions {
		reg.torn, reg.dirty = true, true
	}
	s.r.judgeAll()
	s.last = s.r.publish()
	s.doubts(s.region(1), model.SlotsChanging)
	s.read()
	s.doubts(s.region(1))
}
