package collect

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// lab is a host with an n300 (chips 20 and 21, device 0), two n150s (30 on
// device 1, 40 on device 2), whose kernel indexes are not in the order of
// their bus addresses.
func lab(processes ...model.Process) *model.Snapshot {
	device := func(index int, bus, card string, chips ...uint64) model.Device {
		d := model.Device{Index: index, BusID: bus, Arch: model.Wormhole, Board: model.Value(card)}
		for i, id := range chips {
			d.Chips = append(d.Chips, model.Chip{ID: model.Value(id), Remote: i > 0})
		}
		return d
	}
	return &model.Snapshot{
		Devices: []model.Device{
			device(0, "0000:01:00.0", "n300", 20, 21),
			device(1, "0000:41:00.0", "n150", 30),
			device(2, "0000:21:00.0", "n150", 40),
		},
		Processes: processes,
	}
}

// at places the chips of lab; 90 is a chip of device 1 or 2, 99 of none.
var at = map[uint64]place{
	20: {device: 0, slot: 0, match: board.Match{Certainty: board.Exact, Basis: model.BySysfs}},
	21: {device: 0, slot: 1, match: board.Match{Certainty: board.Exact, Basis: model.BySysfs}},
	30: {device: 1, match: board.Match{Certainty: board.Exact, Basis: model.BySysfs}},
	40: {device: 2, match: board.Match{Certainty: board.Inferred, Basis: model.ByOrder}},
	90: {device: noPlace, match: board.Match{Certainty: board.Ambiguous, Candidates: []int{1, 2}}},
	99: {device: noPlace},
}

func runs(pid int, devices ...int) model.Process {
	p := model.Process{PID: pid, StartTicks: 9, State: model.Running}
	for _, d := range devices {
		p.Devices = append(p.Devices, model.DeviceUse{Device: d, OpenFDs: model.Value(1)})
	}
	return p
}

func bytesOf(dram uint64, bound model.Bound) (b model.PoolBytes) {
	for _, pool := range regionPools() {
		b[pool] = model.BoundBytes(0, bound)
	}
	b[model.DRAM] = model.BoundBytes(dram, bound)
	return b
}

func held(pid int, chip, dram uint64, doubts ...model.Doubt) claim.Held {
	return claim.Held{
		Process: model.ProcessID{PID: pid, StartTicks: 9}, Chip: claim.Chip{ID: chip},
		Bytes: bytesOf(dram, model.WorstBound(doubts)), Doubts: doubts,
	}
}

// shmSet is a set of tt-metal's statistics: a region for every chip spoken of.
func shmSet(list ...claim.Held) claim.Set {
	set := claim.Set{Source: model.FromShm, Held: list}
	for _, h := range list {
		set.Chips = append(set.Chips, claim.Chip{ID: h.Chip.ID, Region: fmt.Sprintf("/dev/shm/%d", h.Chip.ID), Why: model.Known, Holders: []model.ProcessID{h.Process}})
	}
	return set
}

func reported(pid, number int, dram uint64) claim.Held {
	h := held(pid, 0, dram)
	h.Chip = claim.Chip{ByNumber: true, Number: number}
	return h
}

func lostOf(h claim.Held, kind model.DoubtKind) claim.Held {
	h.Bytes, h.Doubts = model.PoolBytes{}, []model.Doubt{{Kind: kind}}
	return h
}

func silent(pid int, kind model.DoubtKind) claim.Silent {
	return claim.Silent{Process: model.ProcessID{PID: pid, StartTicks: 9}, Why: model.Doubt{Kind: kind, PID: pid}}
}

// formatBytes writes a figure the way a view would: "5", "≥5", "~5", "absent".
func formatBytes(b model.Bytes) string {
	n, bound, known := b.Best()
	if !known {
		return b.Status().String()
	}
	return map[model.Bound]string{model.AtLeast: "≥", model.Unsure: "~"}[bound] + fmt.Sprint(n)
}

// formatMemory writes what is said of a memory: "ok ~5 other_threads".
func formatMemory(m *model.Memory) string {
	words := []string{string(m.Tracking), formatBytes(m.Pools[model.DRAM].Used)}
	var kinds []string
	for _, d := range m.Doubts {
		kinds = append(kinds, string(d.Kind))
	}
	slices.Sort(kinds)
	return strings.Join(append(words, slices.Compact(kinds)...), " ")
}

func TestJoin(t *testing.T) {
	region := func(chip uint64, why model.Status, kinds ...model.DoubtKind) claim.Set {
		c := claim.Chip{ID: chip, Why: why}
		for _, k := range kinds {
			c.Doubts = append(c.Doubts, model.Doubt{Kind: k, Chip: chip})
		}
		return claim.Set{Source: model.FromShm, Chips: []claim.Chip{c}}
	}
	both := func(a, b claim.Set) claim.Set {
		a.Chips, a.Held, a.Silent = append(a.Chips, b.Chips...), append(a.Held, b.Held...), append(a.Silent, b.Silent...)
		return a
	}
	quiet := claim.Set{Source: model.FromShm}
	says := func(source model.Source, list ...claim.Held) claim.Set { return claim.Set{Source: source, Held: list} }
	partial := func(h claim.Held) claim.Held { h.Partial = true; return h }
	some := func(h claim.Held) claim.Held { h.Chip = claim.Chip{Some: true}; return h }
	tests := []struct {
		name      string
		processes []model.Process
		sets      []claim.Set
		idle      bool
		opens     proc.Hold
		unopened  bool
		want      map[int]string // by device
	}{
		{name: "no process, according to the driver", sets: []claim.Set{quiet}, idle: true, want: map[int]string{0: "ok 0", 1: "ok 0"}},
		{name: "no process that is known", sets: []claim.Set{quiet}, want: map[int]string{1: "absent absent"}},
		{
			name: "a region that may not be read on an idle board", idle: true,
			sets: []claim.Set{region(30, model.Denied, model.RegionDenied)}, want: map[int]string{1: "ok 0"},
		},
		{
			name: "a region that may not be read", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{both(region(30, model.Denied, model.RegionDenied), claim.Set{Silent: []claim.Silent{silent(5, model.ProcessDenied)}})},
			want: map[int]string{1: "denied denied process_denied region_denied"},
		},
		{
			name: "one process", processes: []model.Process{runs(5, 1)}, sets: []claim.Set{shmSet(held(5, 30, 7))},
			want: map[int]string{1: "ok 7"},
		},
		{
			name: "one process, doubted", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{shmSet(held(5, 30, 7, model.Doubt{Kind: model.OtherThreads}))},
			want: map[int]string{1: "ok ~7"},
		},
		{
			name: "who opens a board accounts for its chips", processes: []model.Process{runs(5, 0, 1)},
			sets: []claim.Set{shmSet(held(5, 20, 7))}, want: map[int]string{0: "ok 7", 1: "ok 0"},
		},
		{
			name: "one of two does not account", processes: []model.Process{runs(5, 1), runs(6, 1)},
			sets: []claim.Set{both(shmSet(held(5, 30, 7)), claim.Set{Silent: []claim.Silent{silent(6, model.TrackingDisabled)}})},
			want: map[int]string{1: "partial ≥7 tracking_disabled"},
		},
		{
			name: "one that was watched from its start has freed everything, wherever it was", processes: []model.Process{runs(5, 0, 1), runs(6, 1)},
			sets: []claim.Set{
				both(shmSet(held(6, 30, 7)), claim.Set{Silent: []claim.Silent{silent(5, model.TrackingDisabled)}}),
				{Source: model.FromUprobe, Nothing: []model.ProcessID{{PID: 5, StartTicks: 9}}},
			},
			want: map[int]string{0: "ok 0", 1: "ok 7"},
		},
		{
			name: "the other is no tt-metal program", processes: []model.Process{runs(5, 1), runs(6, 1)},
			sets: []claim.Set{both(shmSet(held(5, 30, 7)), claim.Set{Silent: []claim.Silent{silent(6, model.NotTTMetal)}})},
			want: map[int]string{1: "ok 7"},
		},
		{
			name: "at least nothing is missing", processes: []model.Process{runs(5, 1), runs(6, 1)},
			sets: []claim.Set{both(shmSet(held(5, 30, 0)), claim.Set{Silent: []claim.Silent{silent(6, model.NotAttached)}})},
			want: map[int]string{1: "partial absent not_attached"},
		},
		{
			name: "a slot of an unknown owner", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{both(region(30, model.Known, model.SlotUnseen), claim.Set{Held: []claim.Held{held(5, 30, 0)}, Source: model.FromShm})},
			want: map[int]string{1: "partial absent slot_unseen"},
		},
		{
			name: "a process without a slot", processes: []model.Process{runs(5, 1), runs(6, 1)},
			sets: []claim.Set{shmSet(held(5, 30, 7), lostOf(held(6, 30, 0), model.SlotsFull))},
			want: map[int]string{1: "partial ≥7"},
		},
		{
			name: "a chip that may be another's", processes: []model.Process{runs(5, 1, 2)},
			sets: []claim.Set{shmSet(held(5, 90, 7))},
			want: map[int]string{1: "absent absent chip_ambiguous", 2: "absent absent chip_ambiguous"},
		},
		{
			name: "a chip that was concluded", processes: []model.Process{runs(5, 2)}, sets: []claim.Set{shmSet(held(5, 40, 7))},
			want: map[int]string{2: "ok 7 chip_inferred"},
		},
		{
			name: "a mock run of a board's own chip", processes: []model.Process{runs(5)}, opens: proc.NotHeld,
			sets: []claim.Set{shmSet(held(5, 30, 7))}, idle: true, want: map[int]string{1: "ok 0"},
		},
		{
			name: "two sources are not added", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{shmSet(held(5, 30, 7, model.Doubt{Kind: model.OtherThreads})), says(model.FromSocket, reported(5, 0, 9))},
			want: map[int]string{1: "ok 9"},
		},
		{
			name: "the allocator itself wins", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{shmSet(held(5, 30, 7)), says(model.FromSocket, reported(5, 0, 9)), says(model.FromUprobe, held(5, 30, 11))},
			want: map[int]string{1: "ok 11"},
		},
		{
			name: "on some chip, and there is one", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{quiet, says(model.FromUprobe, some(held(5, 0, 11)))}, want: map[int]string{1: "ok 11"},
		},
		{
			name: "on some chip of two", processes: []model.Process{runs(5, 0)},
			sets: []claim.Set{quiet, says(model.FromUprobe, some(held(5, 0, 11)))}, want: map[int]string{0: "absent absent chip_unknown"},
		},
		{
			name: "on some chip of two, one of which is known", processes: []model.Process{runs(5, 0)},
			sets: []claim.Set{quiet, says(model.FromUprobe, held(5, 20, 3), some(held(5, 0, 11)))}, want: map[int]string{0: "partial ≥3 chip_unknown"},
		},
		{
			name: "on some device of two", processes: []model.Process{runs(5, 1, 2)},
			sets: []claim.Set{quiet, says(model.FromUprobe, some(held(5, 0, 11)))},
			want: map[int]string{1: "absent absent chip_unknown", 2: "absent absent chip_unknown"},
		},
		{
			name: "an incomplete report does not", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{shmSet(held(5, 30, 7)), says(model.FromSocket, partial(reported(5, 0, 3)))},
			want: map[int]string{1: "ok 7"},
		},
		{
			name: "unless it is all there is", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{quiet, says(model.FromSocket, partial(claim.Held{
				Process: model.ProcessID{PID: 5, StartTicks: 9}, Chip: claim.Chip{ByNumber: true},
				Bytes: bytesOf(3, model.AtLeast), Doubts: []model.Doubt{{Kind: model.ReportLate}},
			}))},
			want: map[int]string{1: "partial ≥3"},
		},
		{
			name: "all users are seen exactly, whatever is wrong with the region", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{region(30, model.Unsupported, model.LayoutUnknown), says(model.FromUprobe, held(5, 30, 11))},
			want: map[int]string{1: "ok 11"},
		},
		{
			name: "a liar without the device", processes: []model.Process{runs(5)}, opens: proc.NotHeld, idle: true,
			sets: []claim.Set{quiet, says(model.FromSocket, reported(5, 2, 9))}, want: map[int]string{0: "ok 0", 1: "ok 0", 2: "ok 0"},
		},
		{
			name: "a program without the device, which may report", processes: []model.Process{runs(5)}, opens: proc.NotHeld, idle: true, unopened: true,
			sets: []claim.Set{quiet, says(model.FromSocket, reported(5, 2, 9))}, want: map[int]string{0: "ok 0", 1: "ok ~9", 2: "ok 0"},
		},
		{
			name: "but not with more than there is", processes: []model.Process{runs(5)}, opens: proc.NotHeld, idle: true, unopened: true,
			sets: []claim.Set{quiet, says(model.FromSocket, reported(5, 2, 16<<40))}, want: map[int]string{1: "ok 0"},
		},
		{
			name: "nor by another way than the socket", processes: []model.Process{runs(5)}, opens: proc.NotHeld, idle: true, unopened: true,
			sets: []claim.Set{quiet, says(model.FromUprobe, held(5, 30, 9))}, want: map[int]string{1: "ok 0"},
		},
		{
			name: "perhaps a liar without the device", processes: []model.Process{runs(5)}, opens: proc.HoldUnknown, idle: true,
			sets: []claim.Set{quiet, says(model.FromSocket, reported(5, 2, 9))}, want: map[int]string{0: "ok 0", 1: "ok ~9", 2: "ok 0"},
		},
		{
			name: "a liar with more than there is", processes: []model.Process{runs(5, 1)},
			sets: []claim.Set{quiet, says(model.FromSocket, reported(5, 0, 16<<40))}, want: map[int]string{1: "absent implausible not_believed"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := lab(tt.processes...)
			j := newJoin(s, tt.sets, at)
			j.idle = func(int) bool { return tt.idle }
			j.opens = func(model.ProcessID, int) proc.Hold { return tt.opens }
			j.unopened = tt.unopened
			j.run()
			for device, want := range tt.want {
				if got := formatMemory(&s.Devices[device].Memory); got != want {
					t.Errorf("device %d: %s, want %s", device, got, want)
				}
			}
		})
	}
}

// An allocator of which no chip is known may stand for a mesh: what it takes of
// one chip is no more than a lower bound of what its process holds.
func TestPlacelessIsALowerBound(t *testing.T) {
	s := lab(runs(5, 0))
	h := held(5, 0, 11)
	h.Chip = claim.Chip{Some: true}
	newJoin(s, []claim.Set{{Source: model.FromUprobe, Held: []claim.Held{h}}}, at).run()
	u := useOf(&s.Processes[0], model.NoDevice)
	if got := formatBytes(u.Memory[model.DRAM]); got != "≥11" {
		t.Errorf("the process holds %s, want ≥11", got)
	}
}

// A chip that no process has ever accounted for has nothing that the dead left, so
// that what they left on the other one is all of the board's.
func TestStaleOfOneChip(t *testing.T) {
	set := claim.Set{
		Source: model.FromShm, Chips: []claim.Chip{{ID: 21, Region: "/dev/shm/21", Why: model.Known}},
		Left: []claim.Left{{Chip: 21, Region: "/dev/shm/21", PID: 66, Bytes: bytesOf(1000, model.Exact)}},
	}
	s := lab()
	newJoin(s, []claim.Set{set}, at).run()
	if got := formatBytes(s.Devices[0].Memory.Stale); got != "1000" {
		t.Errorf("%s is stale, want 1000", got)
	}
}

// TestJoinWhole: two regions of one chip, leftovers, a chip of no device.
func TestJoinWhole(t *testing.T) {
	when := time.Unix(1_790_000_000, 0)
	set := shmSet(held(5, 20, 100), held(5, 21, 200), held(7, 21, 1), held(8, 99, 5))
	set.Left = []claim.Left{
		{Chip: 21, Region: "/dev/shm/21", PID: 66, Name: "dead", Bytes: bytesOf(1000, model.Exact), Updated: when, Mapped: true},
		{Chip: 21, PID: 67, Name: "nothing", Bytes: bytesOf(0, model.Exact)},
	}
	s := lab(runs(5, 0, 1), runs(7, 0), runs(8))
	newJoin(s, []claim.Set{set}, at).run()
	d := &s.Devices[0]
	if got := formatMemory(&d.Chips[0].Memory) + ", " + formatMemory(&d.Chips[1].Memory) + ", " + formatMemory(&d.Memory); got != "ok 100, ok 201, ok 301" {
		t.Errorf("device 0: %s", got)
	}
	if !d.Memory.Stale.Exactly(1000) || d.Chips[1].Region != "/dev/shm/21" {
		t.Errorf("stale %s, region %s", formatBytes(d.Memory.Stale), d.Chips[1].Region)
	}
	if len(s.StaleSlots) != 1 || s.StaleSlots[0].Device != 0 || s.StaleSlots[0].PID != 66 || !s.StaleSlots[0].Mapped {
		t.Errorf("ghosts %+v", s.StaleSlots)
	}
	if len(s.Unmatched) != 1 || formatMemory(&s.Unmatched[0].Memory) != "ok 5" || s.Unmatched[0].ID.V != 99 || len(s.Unmatched[0].Candidates) != 0 {
		t.Errorf("unmatched %+v", s.Unmatched)
	}
	want := model.DeviceUse{
		Device: 0, OpenFDs: model.Value(1), Tracking: model.TrackOK, Source: model.FromShm, Memory: bytesOf(300, model.Exact),
		Chips: []model.ChipUse{{ChipID: 20, Memory: bytesOf(100, model.Exact)}, {ChipID: 21, Memory: bytesOf(200, model.Exact)}},
	}
	if diff := cmp.Diff(want, s.Processes[0].Devices[0]); diff != "" {
		t.Errorf("process 5 on device 0 (-want +got):\n%s", diff)
	}
	if u := s.Processes[2].Devices[0]; u.Device != model.NoDevice || formatBytes(u.Memory[model.DRAM]) != "5" {
		t.Errorf("process 8: %+v", u)
	}
}

// TestJoinAllocators: where the allocator itself is seen, a chip has its own
// capacity, and what is free in it, as long as no other process is there.
func TestJoinAllocators(t *testing.T) {
	exact := held(5, 30, 700)
	exact.Pools = &claim.Pools{model.DRAM: {
		Occupied: model.ExactBytes(768), Capacity: model.Value[uint64](1000), Free: model.Value[uint64](232), LargestFree: model.Value[uint64](200),
	}}
	s := lab(runs(5, 1))
	newJoin(s, []claim.Set{{Source: model.FromUprobe, Held: []claim.Held{exact}}}, at).run()
	p := s.Devices[1].Memory.Pools[model.DRAM]
	if !p.Used.Exactly(700) || !p.Occupied.Exactly(768) || p.Total.V != 1000 || p.Free.V != 232 || p.LargestFree.V != 200 {
		t.Errorf("alone: %+v", p)
	}
	s = lab(runs(5, 1), runs(6, 1))
	newJoin(s, []claim.Set{{Source: model.FromUprobe, Held: []claim.Held{exact}}, shmSet(held(6, 30, 5))}, at).run()
	p = s.Devices[1].Memory.Pools[model.DRAM]
	if formatBytes(p.Used) != "705" || p.Free.Known() {
		t.Errorf("with another one: %+v", p)
	}
}

// TestJoinCompletes: circular buffers are known by statistics only, also of a
// process whose allocator is seen.
func TestJoinCompletes(t *testing.T) {
	exact := held(5, 30, 700)
	exact.Bytes[model.CB] = model.Bytes{}
	counted := held(5, 30, 600, model.Doubt{Kind: model.OtherThreads})
	counted.Bytes[model.CB], counted.CB = model.BoundBytes(9, model.Unsure), model.CBCached
	s := lab(runs(5, 1))
	newJoin(s, []claim.Set{{Source: model.FromUprobe, Held: []claim.Held{exact}}, shmSet(counted)}, at).run()
	m := &s.Devices[1].Memory
	if !m.Pools[model.DRAM].Used.Exactly(700) || formatBytes(m.Pools[model.CB].Used) != "~9" || m.CB != model.CBCached {
		t.Errorf("%s, CB %s (%s)", formatMemory(m), formatBytes(m.Pools[model.CB].Used), m.CB)
	}
}

func TestDisagreement(t *testing.T) {
	s := lab(runs(5, 1))
	newJoin(s, []claim.Set{
		{Source: model.FromUprobe, Held: []claim.Held{held(5, 30, 11)}},
		{Source: model.FromSocket, Held: []claim.Held{reported(5, 0, 9)}},
		shmSet(held(5, 30, 7, model.Doubt{Kind: model.OtherThreads})), // which is known not to see everything
	}, at).run()
	var got []model.Source
	for _, d := range s.Processes[0].Devices[0].Doubts {
		if d.Kind == model.SourcesDisagree {
			got = append(got, d.Source)
		}
	}
	if !slices.Equal(got, []model.Source{model.FromSocket}) {
		t.Errorf("disagreement with %v, want with the socket", got)
	}
}

func TestChipOrder(t *testing.T) {
	s := lab()
	want := []ChipAt{{0, 0}, {2, 0}, {1, 0}, {0, 1}} // by bus, then the remote chip
	if diff := cmp.Diff(want, ChipOrder(s.Devices)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Devices[0].Arch = model.Blackhole // the arch of the lowest index wins
	if diff := cmp.Diff([]ChipAt{{0, 0}, {0, 1}}, ChipOrder(s.Devices)); diff != "" {
		t.Errorf("mixed (-want +got):\n%s", diff)
	}
	if got := ChipOrder(nil); got != nil {
		t.Errorf("no devices: %v", got)
	}
}

// A process's own numbers find the right chips.
func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		open    []int
		visible string
		number  int
		want    chipAt
	}{
		"all":                      {number: 0, want: chipAt{0, 0}},
		"second by bus":            {number: 1, want: chipAt{2, 0}},
		"third by bus":             {number: 2, want: chipAt{1, 0}},
		"remote":                   {number: 3, want: chipAt{0, 1}},
		"none":                     {number: 4, want: chipAt{noPlace, 0}},
		"visible by number":        {visible: "2", want: chipAt{1, 0}},
		"visible by address":       {visible: "21:00", want: chipAt{2, 0}},
		"visible, remote last":     {visible: "0,1", number: 2, want: chipAt{0, 1}},
		"only one open":            {open: []int{2}, want: chipAt{2, 0}},
		"container, own numbers":   {open: []int{1}, visible: "0", want: chipAt{1, 0}},
		"visible and open, agreed": {open: []int{1}, visible: "2", want: chipAt{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lab(runs(10, c.open...))
			j := newJoin(s, nil, at)
			if got := j.locate(&claim.Chip{ByNumber: true, Number: c.number, Visible: c.visible}, &s.Processes[0]); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestMayDescribe: another user's description of the host is ignored.
func TestMayDescribe(t *testing.T) {
	user, idler := runs(5, 1), runs(6)
	user.UID, idler.UID = model.Value(70001), model.Value(70002)
	s := lab(user, idler)
	for uid, want := range map[int]bool{0: true, os.Geteuid(): true, 70001: true, 70002: false, 70003: false} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if got := mayDescribe(s, uid); got != want {
				t.Errorf("uid %d: %v, want %v", uid, got, want)
			}
		})
	}
}
