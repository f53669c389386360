package shm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

func bytesOf(dram, l1 uint64) (b model.PoolBytes) {
	for _, pool := range regionPools {
		b[pool] = model.Value[uint64](0)
	}
	b[model.DRAM], b[model.L1] = model.Value(dram), model.Value(l1)
	return b
}

func usesOf(id uint64, path string, uses ...Use) *Region {
	r := &Region{ID: id, Path: path, Version: 3, Tracking: model.TrackOK, CBMeans: cbCached, Used: bytesOf(0, 0)}
	for _, u := range uses {
		r.Uses = append(r.Uses, u)
		r.Mapped = append(r.Mapped, u.PID)
		for _, pool := range regionPools {
			r.Used[pool] = add(r.Used[pool], u.Bytes[pool])
		}
	}
	return r
}

func tracked(pid int) *Process {
	return &Process{PID: pid, StartTicks: 9, Name: "python", UID: 1000, Tracking: model.TrackOK, Release: model.Value("0.81.1"), Notes: []string{"one thread"}}
}

// placed puts ids 20 and 21 on device 0, 30 on device 1, others nowhere.
func placed(r *Region) Place {
	switch r.ID {
	case 20, 21:
		return Place{Device: 0, Chip: int(r.ID - 20)}
	case 30:
		return Place{Device: 1}
	}
	return Place{Device: model.NoDevice, Note: "no device has it"}
}

func twoDevices(processes ...model.Process) *model.Snapshot {
	return &model.Snapshot{
		Devices: []model.Device{
			{Index: 0, Chips: []model.Chip{{Name: "L"}, {Name: "R", Remote: true}}},
			{Index: 1, Chips: []model.Chip{{}}},
		},
		Processes: processes,
	}
}

func opened(pid int, devices ...int) model.Process {
	p := model.Process{PID: pid, StartTicks: 9, State: model.Running}
	for _, d := range devices {
		p.Devices = append(p.Devices, model.DeviceUse{Device: d})
	}
	return p
}

func usedDRAM(m model.Memory) string {
	return string(m.Tracking) + " " + show(m.Pools[model.DRAM].Used)
}

func TestApply(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	container := usesOf(21, "/proc/7/root/dev/shm/tt_device_21_memory", Use{PID: 7, StartTicks: 9, Bytes: bytesOf(1, 2)})
	r21 := usesOf(21, "/dev/shm/tt_device_21_memory", Use{PID: 5, StartTicks: 9, Bytes: bytesOf(200, 0), Note: "attached"})
	r21.Ghosts = []Ghost{
		{PID: 66, Name: "dead", Bytes: bytesOf(1000, 10), Updated: at},
		{PID: 67, Name: "nothing", Bytes: bytesOf(0, 0)},
	}
	sweep := &Sweep{
		Regions: []*Region{
			usesOf(20, "/dev/shm/tt_device_20_memory", Use{PID: 5, StartTicks: 9, Bytes: bytesOf(100, 3)}),
			r21, container,
			usesOf(99, "/dev/shm/tt_device_99_memory", Use{PID: 8, StartTicks: 9, Bytes: bytesOf(5, 0)}),
		},
		Processes: []*Process{tracked(5), tracked(7), tracked(8)},
	}
	snap := twoDevices(opened(5, 0, 1), opened(7, 0))
	if got := sweep.Strangers(snap); !cmp.Equal(got, []int{8}) {
		t.Errorf("strangers %v, want 8", got)
	}
	Merge{Place: placed}.Apply(snap, sweep)

	d := snap.Devices[0]
	for i, want := range []string{"ok 100", "ok 201"} {
		if got := usedDRAM(d.Chips[i].Memory); got != want {
			t.Errorf("chip %d: %s, want %s", i, got, want)
		}
	}
	if got := usedDRAM(d.Memory); got != "ok 301" || show(d.Memory.Pools[model.L1].Used) != "5" || d.Memory.CBMeans != cbCached {
		t.Errorf("device 0: %s %+v", got, d.Memory)
	}
	if d.Chips[1].ID.V != 21 || d.Chips[1].Region != "/dev/shm/tt_device_21_memory" || show(d.Chips[1].Memory.Stale) != "1010" || show(d.Memory.Stale) != "1010" {
		t.Errorf("chip 1: %+v", d.Chips[1])
	}
	// Everybody who has device 1 open accounts elsewhere: nothing is on it.
	if got := usedDRAM(snap.Devices[1].Memory); got != "ok 0" {
		t.Errorf("device 1: %s", got)
	}
	wantGhosts := []model.Ghost{{
		Region: "/dev/shm/tt_device_21_memory", ChipID: 21, Device: 0, PID: 66, Name: "dead",
		Bytes: bytesOf(1000, 10), Updated: at, Mapped: true,
	}}
	if diff := cmp.Diff(wantGhosts, snap.Ghosts); diff != "" {
		t.Errorf("ghosts (-want +got):\n%s", diff)
	}
	if len(snap.Unmatched) != 1 || snap.Unmatched[0].ID.V != 99 || usedDRAM(snap.Unmatched[0].Memory) != "ok 5" || snap.Unmatched[0].Memory.Note != "no device has it" {
		t.Errorf("unmatched %+v", snap.Unmatched)
	}

	p := snap.Processes[0]
	if p.Release.V != "0.81.1" || !cmp.Equal(p.Notes, []string{"one thread"}) {
		t.Errorf("process 5: %+v", p)
	}
	want := model.DeviceUse{
		Device: 0, Tracking: model.TrackOK, Source: "shm", Note: "attached", Memory: bytesOf(300, 3),
		Chips: []model.ChipUse{{ChipID: 20, Memory: bytesOf(100, 3)}, {ChipID: 21, Memory: bytesOf(200, 0)}},
	}
	if diff := cmp.Diff(want, p.Devices[0]); diff != "" {
		t.Errorf("process 5 on device 0 (-want +got):\n%s", diff)
	}
	if u := p.Devices[1]; u.Tracking != model.TrackAbsent || u.Memory[model.DRAM].Known() {
		t.Errorf("process 5 on device 1: %+v", u)
	}
	if s := snap.Processes[2]; s.PID != 8 || s.Name.V != "python" || s.UID.V != 1000 || s.Devices[0].Device != model.NoDevice {
		t.Errorf("process 8: %+v", s)
	}
}

// A device that may have a chip of which nothing more is known is not empty.
func TestApplyLeavesOpen(t *testing.T) {
	for name, c := range map[string]struct {
		place func(*Region) Place
		want  string // of device 1
	}{
		"a chip of it or of another": {func(*Region) Place { return Place{Device: model.NoDevice, Candidates: []int{0, 1}} }, "partial absent"},
		"a chip of nobody":           {func(*Region) Place { return Place{Device: model.NoDevice} }, "absent absent"},
		"a chip of another":          {func(*Region) Place { return Place{Device: 0} }, "ok 0"},
	} {
		snap := twoDevices(opened(5, 0, 1))
		Merge{Place: c.place}.Apply(snap, &Sweep{
			Regions:   []*Region{usesOf(20, "/dev/shm/tt_device_20_memory", Use{PID: 5, StartTicks: 9, Bytes: bytesOf(100, 3)})},
			Processes: []*Process{tracked(5)},
		})
		got := usedDRAM(snap.Devices[1].Memory)
		if got, _, _ = strings.Cut(got, ":"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestApplySaysWhatIsMissing(t *testing.T) {
	denied := &Region{ID: 20, Tracking: model.TrackDenied, Reason: "not yours"}
	for _, pool := range regionPools {
		denied.Used[pool] = model.Missing[uint64](model.Denied, "not yours")
	}
	untracked := func(tracking model.Tracking, foreign bool) *Process {
		return &Process{PID: 5, StartTicks: 9, User: true, Tracking: tracking, Reason: "no reason", foreign: foreign}
	}
	busy := usesOf(20, "", Use{PID: 6, StartTicks: 9, Bytes: bytesOf(7, 0)})
	both := []model.Process{opened(5, 0), opened(6, 0)}
	tests := []struct {
		name      string
		regions   []*Region
		processes []*Process
		snap      []model.Process
		idle      bool
		chip      string // first chip of device 0
		device    string
		status    model.Status // of device 0's DRAM
		note      string
	}{
		{name: "nothing at all", chip: "absent absent", device: "absent absent", status: model.Absent, note: "no tt-metal process accounts"},
		{name: "nobody has it open", idle: true, chip: "ok 0", device: "ok 0", status: model.Known},
		{name: "a region that may not be read", regions: []*Region{denied}, chip: "denied denied: not yours", device: "partial denied: not yours", status: model.Denied, note: "not yours"},
		{
			name: "readable beside unreadable", regions: []*Region{denied, busy}, processes: []*Process{tracked(6)}, snap: both[1:],
			chip: "partial 7", device: "partial 7", status: model.Known, note: "not yours",
		},
		{
			name: "a user that does not account", processes: []*Process{untracked(model.TrackAbsent, false)}, snap: both[:1],
			chip: "absent absent: process 5 is not in the figures: no reason", device: "absent absent: process 5 is not in the figures: no reason", status: model.Absent, note: "process 5",
		},
		{
			name: "and one that does", regions: []*Region{busy}, processes: []*Process{untracked(model.TrackAbsent, false), tracked(6)}, snap: both,
			chip: "partial 7", device: "partial 7", status: model.Known, note: "process 5",
		},
		{
			name: "and a tool beside it", regions: []*Region{busy}, processes: []*Process{untracked(model.TrackAbsent, true), tracked(6)}, snap: both,
			chip: "ok 7", device: "ok 7", status: model.Known,
		},
		{
			name: "only a tool", processes: []*Process{untracked(model.TrackAbsent, true)}, snap: both[:1],
			chip: "absent absent", device: "absent absent", status: model.Absent, note: "no tt-metal process accounts",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			snap := twoDevices()
			for _, p := range tt.snap {
				snap.Processes = append(snap.Processes, opened(p.PID, 0))
			}
			Merge{Place: placed, Idle: func(int) bool { return tt.idle }}.Apply(snap, &Sweep{Regions: tt.regions, Processes: tt.processes})
			d := snap.Devices[0]
			if got := usedDRAM(d.Chips[0].Memory); !strings.HasPrefix(got, tt.chip) {
				t.Errorf("chip: %s, want %s", got, tt.chip)
			}
			if got := usedDRAM(d.Memory); !strings.HasPrefix(got, tt.device) {
				t.Errorf("device: %s, want %s", got, tt.device)
			}
			if got := d.Memory.Pools[model.DRAM].Used.Status; got != tt.status {
				t.Errorf("status %s, want %s", got, tt.status)
			}
			if !strings.Contains(d.Memory.Note, tt.note) || tt.note == "" && d.Memory.Note != "" {
				t.Errorf("note %q, want %q", d.Memory.Note, tt.note)
			}
		})
	}
}
