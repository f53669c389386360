package collect

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// watchedAt is a claim of a process whose allocator is seen.
func watchedAt(pid int, chip, dram, occupied uint64) claim.Held {
	h := held(pid, chip, dram)
	h.Pools = &claim.Pools{}
	for _, pool := range blockPools() {
		h.Pools[pool].Occupied = model.ExactBytes(0)
	}
	h.Pools[model.DRAM].Occupied = model.ExactBytes(occupied)
	return h
}

// TestRefusedReport: a report that is not believed counts on no device. More than
// there is is no figure of the process either; what a process in mock mode holds, on a
// device that it does not have open, is.
func TestRefusedReport(t *testing.T) {
	for name, c := range map[string]struct {
		process model.Process
		claim   claim.Held
		figure  bool
	}{
		"more than there is": {runs(5, 1), reported(5, 0, 16<<40), false},
		"not open":           {runs(5), held(5, 30, 700), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := lab(c.process)
			j := newJoin(s, []claim.Set{{Source: model.FromSocket, Held: []claim.Held{c.claim}}}, at)
			j.opens = func(model.ProcessID, int) proc.Hold { return proc.NotHeld }
			j.run()
			refused, figure := false, false
			for _, u := range s.Processes[0].Devices {
				refused = refused || slices.ContainsFunc(u.Doubts, func(d model.Doubt) bool { return d.Kind == model.NotBelieved })
				figure = figure || u.Memory[model.DRAM].Positive()
			}
			if !refused || figure != c.figure {
				t.Errorf("refused %v, a figure %v: %+v", refused, figure, s.Processes[0].Devices)
			}
			for i := range s.Devices {
				if n, _, _ := s.Devices[i].Memory.Pools[model.DRAM].Used.Best(); n != 0 {
					t.Errorf("device %d: %d", i, n)
				}
			}
		})
	}
}

// TestOccupied: what is occupied is known where every process on the chip is
// seen through its allocator, and nowhere else.
func TestOccupied(t *testing.T) {
	unsure := model.Doubt{Kind: model.OtherThreads}
	seen := claim.Set{Source: model.FromUprobe, Held: []claim.Held{watchedAt(5, 30, 700, 768)}}
	for _, c := range []struct {
		name      string
		processes []model.Process
		sets      []claim.Set
		used      string
		occupied  string
	}{
		{"alone", []model.Process{runs(5, 1)}, []claim.Set{seen}, "700", "768"},
		{
			"two",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{{Source: model.FromUprobe, Held: []claim.Held{watchedAt(5, 30, 700, 768), watchedAt(6, 30, 10, 64)}}},
			"710", "832",
		},
		{
			"beside one that only accounts",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{shmSet(held(6, 30, 20000, unsure)), seen},
			"~20700", "absent",
		},
		{
			"beside one that only accounts, exactly",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{shmSet(held(6, 30, 20000)), seen},
			"20700", "absent",
		},
		{
			"beside one that accounts for nothing",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{shmSet(held(6, 30, 0)), seen},
			"700", "768",
		},
		{
			"beside one of which nothing is known", []model.Process{runs(5, 1), runs(6, 1)}, []claim.Set{seen}, "≥700", "absent",
		},
		{
			"beside one that reports",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{{Source: model.FromSocket, Held: []claim.Held{reported(6, 0, 9)}}, seen},
			"709", "absent",
		},
		{
			"beside a program without tt-metal",
			[]model.Process{runs(5, 1), runs(6, 1)},
			[]claim.Set{{Source: model.FromShm, Silent: []claim.Silent{silent(6, model.NotTTMetal)}}, seen},
			"700", "768",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lab(c.processes...)
			newJoin(s, c.sets, at).run()
			p := &s.Devices[1].Memory.Pools[model.DRAM]
			if formatBytes(p.Used) != c.used || formatBytes(p.Occupied) != c.occupied {
				t.Errorf("used %s, occupied %s; want %s and %s", formatBytes(p.Used), formatBytes(p.Occupied), c.used, c.occupied)
			}
			if p.Free.Known() {
				t.Errorf("free %v", p.Free)
			}
		})
	}
}

// TestOccupiedOfDevice: a board with a chip of which only what was asked for is
// known has no figure for what is occupied.
func TestOccupiedOfDevice(t *testing.T) {
	for name, c := range map[string]struct {
		other claim.Held
		want  string
	}{
		"both seen":         {watchedAt(6, 21, 5, 64), "832"},
		"one only accounts": {held(6, 21, 5), "absent"},
		"one is empty":      {held(6, 21, 0), "768"},
	} {
		t.Run(name, func(t *testing.T) {
			source := model.FromShm
			if c.other.Pools != nil {
				source = model.FromUprobe
			}
			s := lab(runs(5, 0), runs(6, 0))
			newJoin(s, []claim.Set{
				{Source: model.FromUprobe, Held: []claim.Held{watchedAt(5, 20, 700, 768)}},
				{Source: source, Held: []claim.Held{c.other}},
			}, at).run()
			if got := formatBytes(s.Devices[0].Memory.Pools[model.DRAM].Occupied); got != c.want {
				t.Errorf("occupied %s, want %s", got, c.want)
			}
		})
	}
}

// TestStale: what the dead left is known where every region of the chip was
// read, and is not 0 where one could not be.
func TestStale(t *testing.T) {
	region := func(why model.Status, kinds ...model.DoubtKind) claim.Set {
		c := claim.Chip{ID: 30, Why: why}
		for _, k := range kinds {
			c.Doubts = append(c.Doubts, model.Doubt{Kind: k, Chip: 30})
		}
		return claim.Set{Source: model.FromShm, Chips: []claim.Chip{c}}
	}
	left := region(model.Known)
	left.Left = []claim.Left{{Chip: 30, PID: 66, Bytes: bytesOf(1000, model.Exact)}}
	watched := claim.Set{Source: model.FromUprobe, Held: []claim.Held{watchedAt(5, 30, 700, 768)}}
	for _, c := range []struct {
		name string
		idle bool
		sets []claim.Set
		want string
	}{
		{"nothing left", true, []claim.Set{region(model.Known)}, "0"},
		{"something left", true, []claim.Set{left}, "1000"},
		{"may not be read, idle", true, []claim.Set{region(model.Denied, model.RegionDenied)}, "denied"},
		{"may not be read, all processes seen", false, []claim.Set{region(model.Denied, model.RegionDenied), watched}, "denied"},
		{"one of two may not be read", true, []claim.Set{region(model.Denied, model.RegionDenied), left}, "≥1000"},
		{"of an unknown layout", true, []claim.Set{region(model.Unsupported, model.LayoutUnknown)}, "unsupported"},
		{"a slot of a process that may be dead", true, []claim.Set{region(model.Known, model.SlotUnseen)}, "absent"},
		{"a slot that may be in use", true, []claim.Set{region(model.Known, model.SlotUnproven)}, "absent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lab()
			if !c.idle {
				s = lab(runs(5, 1))
			}
			j := newJoin(s, c.sets, at)
			j.idle = func(int) bool { return c.idle }
			j.run()
			if got := formatBytes(s.Devices[1].Memory.Stale); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if _, _, known := s.Devices[1].Memory.Pools[model.DRAM].Used.Best(); !known {
				t.Error("what is used is not known")
			}
		})
	}
}

// TestOthersOnly: a device that only programs without tt-metal have open holds
// nothing of tt-metal's, and there is no doubt about it.
func TestOthersOnly(t *testing.T) {
	other := claim.Set{Source: model.FromShm, Silent: []claim.Silent{silent(6, model.NotTTMetal)}}
	region := claim.Set{Source: model.FromShm, Chips: []claim.Chip{{ID: 30, Why: model.Known}}}
	for name, c := range map[string]struct {
		sets   []claim.Set
		hidden int
		want   string
	}{
		"no region":        {[]claim.Set{other}, 0, "ok 0"},
		"a region":         {[]claim.Set{other, region}, 0, "ok 0"},
		"and a hidden one": {[]claim.Set{other, region}, 1, "partial absent users_hidden"},
		"nothing is known": {[]claim.Set{region}, 0, "partial absent nothing_known"},
	} {
		t.Run(name, func(t *testing.T) {
			s := lab(runs(6, 1))
			s.Devices[1].HiddenFDs = c.hidden
			newJoin(s, c.sets, at).run()
			if got := formatMemory(&s.Devices[1].Memory); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestMerge: of each pool the source that knows it best is believed.
func TestMerge(t *testing.T) {
	late := model.Doubt{Kind: model.NoticedLate, PID: 5}
	threads := model.Doubt{Kind: model.OtherThreads}
	found := func(dram, occupied uint64) claim.Held {
		h := held(5, 30, dram, late)
		h.Partial = true
		h.Pools = &claim.Pools{model.DRAM: {Occupied: model.BoundBytes(occupied, model.AtLeast)}}
		return h
	}
	whole := func(h claim.Held) claim.Held { h.Pools[model.DRAM].Whole = true; return h }
	for _, c := range []struct {
		name           string
		counted        claim.Held
		found          claim.Held
		used, occupied string
	}{
		{"found whole", held(5, 30, 130, threads), found(130, 136), "≥130", "≥136"},
		{"found in part", held(5, 30, 130, threads), found(2, 8), "~130", "absent"},
		{"found whole, counted too high", held(5, 30, 20000, threads), whole(found(130, 136)), "≥130", "≥136"},
		{"counted exactly", held(5, 30, 130), found(130, 136), "130", "absent"},
		{"records erased", lostOf(held(5, 30, 0), model.RecordsErased), found(2, 8), "≥2", "≥8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lab(runs(5, 1))
			newJoin(s, []claim.Set{shmSet(c.counted), {Source: model.FromUprobe, Held: []claim.Held{c.found}}}, at).run()
			p := &s.Devices[1].Memory.Pools[model.DRAM]
			if formatBytes(p.Used) != c.used || formatBytes(p.Occupied) != c.occupied {
				t.Errorf("used %s, occupied %s; want %s and %s", formatBytes(p.Used), formatBytes(p.Occupied), c.used, c.occupied)
			}
			if got := formatBytes(s.Processes[0].Devices[0].Memory[model.DRAM]); got != c.used {
				t.Errorf("the process holds %s, want %s", got, c.used)
			}
			if p.Used.Known() && !s.Processes[0].Devices[0].Memory[model.DRAM].Exactly(130) && len(s.Processes[0].Devices[0].Doubts) == 0 {
				t.Error("marked, and nothing says why")
			}
		})
	}
}

// TestBelieve: blocks come from the source that figures would come from.
func TestBelieve(t *testing.T) {
	whole, late := &blocks.Process{PID: 5}, &blocks.Process{PID: 5, Late: true}
	for _, c := range []struct {
		name string
		list []Allocators
		want model.Source
	}{
		{"none", nil, ""},
		{"one", []Allocators{{Source: model.FromUprobe, Process: late}}, model.FromUprobe},
		{"both whole", []Allocators{{Source: model.FromUprobe, Process: whole}, {Source: model.FromTrack, Process: whole}}, model.FromTrack},
		{"a ledger begun late", []Allocators{{Source: model.FromTrack, Process: late}, {Source: model.FromUprobe, Process: whole}}, model.FromUprobe},
		{"both late", []Allocators{{Source: model.FromUprobe, Process: late}, {Source: model.FromTrack, Process: late}}, model.FromTrack},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := Best(c.list...); got.Source != c.want || ok != (c.want != "") {
				t.Errorf("%q %v, want %q", got.Source, ok, c.want)
			}
		})
	}
}

// TestShutOut: a region that a process cannot account in is the reason for the
// device whose chip it is of, and for no other.
func TestShutOut(t *testing.T) {
	shut := silent(5, model.ShutOut)
	shut.Chip, shut.Why.Chip = 40, 40 // of device 2
	set := claim.Set{Source: model.FromShm, Silent: []claim.Silent{silent(5, model.NotAttached), shut}, Chips: []claim.Chip{{ID: 40, Why: model.Known}}}
	for device, want := range map[int]string{1: "absent absent not_attached", 2: "partial absent chip_inferred shut_out"} {
		t.Run(fmt.Sprint(device), func(t *testing.T) {
			s := lab(runs(5, device))
			newJoin(s, []claim.Set{set}, at).run()
			if got := formatMemory(&s.Devices[device].Memory); got != want {
				t.Errorf("device %d: %s, want %s", device, got, want)
			}
		})
	}
}

// TestLargestProgram: circular buffers of programs lie over each other, so those
// of two programs, chips or processes are not added.
func TestLargestProgram(t *testing.T) {
	of := func(pid int, chip, cb uint64) claim.Held {
		h := watchedAt(pid, chip, 1, 64)
		h.Bytes[model.CB], h.CB = model.ExactBytes(cb), model.CBLargest
		return h
	}
	s := lab(runs(5, 0), runs(6, 0))
	newJoin(s, []claim.Set{{Source: model.FromUprobe, Held: []claim.Held{of(5, 20, 300), of(5, 21, 100), of(6, 20, 200)}}}, at).run()
	m := &s.Devices[0].Memory
	if formatBytes(m.Pools[model.CB].Used) != "300" || m.CB != model.CBLargest {
		t.Errorf("device: %s (%s)", formatBytes(m.Pools[model.CB].Used), m.CB)
	}
	if got := formatBytes(s.Devices[0].Chips[0].Memory.Pools[model.CB].Used); got != "300" {
		t.Errorf("chip: %s", got)
	}
	if got := formatBytes(s.Processes[0].Devices[0].Memory[model.CB]); got != "300" {
		t.Errorf("process: %s", got)
	}
}
