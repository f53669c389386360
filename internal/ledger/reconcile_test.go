package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// lab is a host with an n300 (two chips) and two n150s, whose kernel indices
// are not in the order of their bus addresses.
func lab() *model.Snapshot {
	device := func(index int, bus string, chips ...uint64) model.Device {
		d := model.Device{Index: index, BusID: bus, Arch: model.Wormhole}
		for i, id := range chips {
			c := model.Chip{ID: model.Value(id), Remote: i > 0}
			c.Memory.Tracking = model.TrackAbsent
			c.Memory.Note = "no tt-metal process accounts for this chip"
			d.Chips = append(d.Chips, c)
		}
		return d
	}
	return &model.Snapshot{Devices: []model.Device{
		device(0, "0000:41:00.0", 100),
		device(1, "0000:01:00.0", 200, 201),
		device(2, "0000:21:00.0", 300),
	}}
}

func opener(pid int, devices ...int) model.Process {
	p := model.Process{PID: pid, StartTicks: 7, State: model.Running}
	for _, d := range devices {
		p.Devices = append(p.Devices, model.DeviceUse{Device: d, OpenFDs: model.Value(1)})
	}
	return p
}

func report(pid int, uses ...Use) Report {
	return Report{Holding: Holding{Info: Info{Key: Key{PID: pid, Start: 7}, UID: 1000, Name: "a"}, Devices: uses}}
}

func dramUse(device int32, n uint64) Use {
	var u Use
	u.Device, u.Bytes[model.DRAM], u.Peak[model.DRAM], u.Buffers[model.DRAM] = device, n, n, 1
	return u
}

func TestChipOrder(t *testing.T) {
	s := lab()
	// By bus: 01 (index 1), 21 (index 2), 41 (index 0); then the remote chip.
	want := []ChipAt{{1, 0}, {2, 0}, {0, 0}, {1, 1}}
	if diff := cmp.Diff(want, ChipOrder(s.Devices)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Devices[0].Arch = model.Blackhole // the arch of the lowest index wins
	if diff := cmp.Diff([]ChipAt{{0, 0}}, ChipOrder(s.Devices)); diff != "" {
		t.Errorf("mixed (-want +got):\n%s", diff)
	}
	if got := ChipOrder(nil); got != nil {
		t.Errorf("no devices: %v", got)
	}
}

// A process's own numbers find the right boards.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		open    []int
		visible string
		device  int32
		want    int // kernel index
		chip    uint64
	}{
		"all":                      {device: 0, want: 1, chip: 200},
		"second by bus":            {device: 1, want: 2, chip: 300},
		"third by bus":             {device: 2, want: 0, chip: 100},
		"remote":                   {device: 3, want: 1, chip: 201},
		"none":                     {device: 4, want: model.NoDevice},
		"visible by number":        {visible: "2", device: 0, want: 0, chip: 100},
		"visible by address":       {visible: "21:00", device: 0, want: 2, chip: 300},
		"visible, remote last":     {visible: "0,1", device: 2, want: 1, chip: 201},
		"only one open":            {open: []int{2}, device: 0, want: 2, chip: 300},
		"container, own numbers":   {open: []int{0}, visible: "0", device: 0, want: 0, chip: 100},
		"visible and open, agreed": {open: []int{0}, visible: "2", device: 0, want: 0, chip: 100},
	} {
		t.Run(name, func(t *testing.T) {
			s := lab()
			if c.open != nil {
				s.Processes = []model.Process{opener(10, c.open...)}
			}
			r := report(10, dramUse(c.device, 1000))
			r.Visible = c.visible
			Reconcile(s, []Report{r})
			var got []int
			for _, u := range s.Processes[0].Devices {
				if u.Memory[model.DRAM].Known() {
					got = append(got, u.Device)
					if c.chip != 0 && (len(u.Chips) != 1 || u.Chips[0].ChipID != c.chip) {
						t.Errorf("on chips %v, want %d", u.Chips, c.chip)
					}
				}
			}
			if len(s.Processes) != 1 || len(got) != 1 || got[0] != c.want {
				t.Errorf("placed on devices %v, want %d", got, c.want)
			}
		})
	}
}

func TestReconcileFillsIn(t *testing.T) {
	s := lab()
	s.Processes = []model.Process{opener(10, 0, 1, 2)}
	withCB := dramUse(0, 1000)
	withCB.Bytes[model.CB], withCB.Peak[model.CB] = 7, 7
	Reconcile(s, []Report{report(10, withCB, dramUse(3, 50)), report(20)})
	if len(s.Processes) != 1 {
		t.Fatalf("a process that never allocated was added: %v", s.Processes)
	}
	u := s.Processes[0].Devices[1]
	if u.Source != Source || u.Tracking != model.TrackOK || u.Memory[model.DRAM].V != 1050 || u.Memory[model.CB].V != 7 || u.Memory[model.Kernel].Known() {
		t.Errorf("the process on the n300: %+v", u)
	}
	d := s.Device(1)
	if d.Memory.Tracking != model.TrackPartial && d.Memory.Tracking != model.TrackOK {
		t.Errorf("tracking %q", d.Memory.Tracking)
	}
	if d.Chips[0].Memory.Pools[model.DRAM].Used.V != 1000 || d.Chips[1].Memory.Pools[model.DRAM].Used.V != 50 || d.Memory.Pools[model.DRAM].Used.V != 1050 {
		t.Errorf("the board's sums: %+v", d.Memory)
	}
	if d.Memory.Note != "" || d.Memory.Tracking != model.TrackOK {
		t.Errorf("tracking %q, note %q", d.Memory.Tracking, d.Memory.Note)
	}
}

// Somebody else on the device keeps the figures from being complete.
func TestReconcileWithUntracked(t *testing.T) {
	s := lab()
	other := opener(11, 2)
	s.Processes = []model.Process{opener(10, 2), other}
	m := &s.Devices[2].Chips[0].Memory
	m.Tracking, m.Note = model.TrackAbsent, "process 10 is not in the figures: x; process 11 is not in the figures: y"
	Reconcile(s, []Report{report(10, dramUse(0, 1000))})
	d := s.Device(2)
	if d.Memory.Tracking != model.TrackPartial || strings.Contains(d.Memory.Note, "process 10 ") || !strings.Contains(d.Memory.Note, "11") {
		t.Errorf("tracking %q, note %q", d.Memory.Tracking, d.Memory.Note)
	}
	if v := d.Memory.Pools[model.DRAM].Used; !v.Known() || v.V != 1000 {
		t.Errorf("used %+v", v)
	}
	if v := d.Memory.Pools[model.L1].Used; !v.Known() { // the reporter said 0, but it is not the only one
		t.Errorf("L1 %+v", v)
	}
}

// withSHM is a snapshot in which shared memory has a figure for process 10.
func withSHM(bytes uint64) *model.Snapshot {
	s := lab()
	p := opener(10, 2)
	u := &p.Devices[0]
	u.Source, u.Tracking = "shm", model.TrackOK
	u.Memory[model.DRAM] = model.Value(bytes)
	u.Chips = []model.ChipUse{{ChipID: 300, Memory: u.Memory}}
	other := opener(11, 2)
	other.Devices[0].Source, other.Devices[0].Memory[model.DRAM] = "shm", model.Value[uint64](9)
	s.Processes = []model.Process{p, other}
	m := &s.Devices[2].Chips[0].Memory
	m.Tracking, m.Note = model.TrackOK, ""
	m.Pools[model.DRAM].Used = model.Value(bytes + 9)
	return s
}

func TestReconcileNeverAdds(t *testing.T) {
	for name, c := range map[string]struct {
		shm, socket uint64
		incomplete  string
		want        uint64
		source      string
		note        string
	}{
		"agree":      {shm: 1000, socket: 1000, want: 1000, source: Source},
		"disagree":   {shm: 600, socket: 1000, want: 1000, source: Source, note: "shm says dram 600 bytes, not 1000"},
		"incomplete": {shm: 600, socket: 100, incomplete: "ttmond was killed", want: 600, source: "shm", note: "shm says dram 600 bytes, not 100"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSHM(c.shm)
			r := report(10, dramUse(0, c.socket))
			r.Incomplete = c.incomplete
			Reconcile(s, []Report{r})
			u := s.Processes[0].Devices[0]
			if u.Memory[model.DRAM].V != c.want || u.Source != c.source || u.Note != c.note {
				t.Errorf("%d by %s, note %q; want %d by %s, note %q", u.Memory[model.DRAM].V, u.Source, u.Note, c.want, c.source, c.note)
			}
			if got := s.Device(2).Chips[0].Memory.Pools[model.DRAM].Used.V; got != c.want+9 {
				t.Errorf("the chip holds %d, want %d", got, c.want+9)
			}
		})
	}
}

func TestReconcileIncompleteAlone(t *testing.T) {
	s := lab()
	r := report(10, dramUse(0, 5))
	r.Incomplete = "ttmond was killed at 12:00; what was allocated before is not known"
	Reconcile(s, []Report{r})
	u := s.Processes[0].Devices[0]
	if u.Tracking != model.TrackPartial || u.Note != r.Incomplete {
		t.Errorf("tracking %q, note %q", u.Tracking, u.Note)
	}
	if m := s.Device(1).Memory; m.Tracking != model.TrackPartial || !strings.Contains(m.Note, "10 in part") {
		t.Errorf("the device: tracking %q, note %q", m.Tracking, m.Note)
	}
	if p := s.Processes[0]; p.UID.V != 1000 || p.Name.V != "a" || p.State != model.Running {
		t.Errorf("the process: %+v", p)
	}
}
