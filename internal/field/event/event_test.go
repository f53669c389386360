package event

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// between returns the texts of the events from one snapshot to another.
func between(a, b *model.Snapshot) []string {
	var d Detector
	d.Next(a)
	var out []string
	for _, e := range d.Next(b) {
		out = append(out, string(e.Kind)+": "+e.Short+" | "+e.Text)
	}
	return out
}

func TestDetector(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(before, after *model.Snapshot)
		want   []string
	}{
		{"nothing", func(a, b *model.Snapshot) {}, nil},
		{
			"started",
			func(a, b *model.Snapshot) {
				a.Processes = a.Processes[1:]
				b.Processes[0].StartTime = b.Time.Add(-time.Second)
			},
			[]string{"started: 182034 started | python3 (182034) started on devices 0, 1"},
		},
		{
			"opened late",
			func(a, b *model.Snapshot) { a.Processes = a.Processes[1:] },
			[]string{"started: 182034 opened | python3 (182034) opened devices 0, 1"},
		},
		{
			"devices not known yet",
			func(a, b *model.Snapshot) {
				a.Processes = a.Processes[1:]
				b.Processes[0].Devices = []model.DeviceUse{{Device: model.NoDevice}}
			},
			[]string{"started: 182034 opened | python3 (182034) opened a device; which one is unknown"},
		},
		{
			"devices known later than the process",
			func(a, b *model.Snapshot) {
				a.Processes[0].Devices = []model.DeviceUse{{Device: model.NoDevice}}
				b.Processes[0].StartTime = b.Time.Add(-time.Second)
			},
			[]string{"started: 182034 started | python3 (182034) started on devices 0, 1"},
		},
		{
			"gone",
			func(a, b *model.Snapshot) { b.Processes = b.Processes[1:] },
			[]string{"gone: 182034 gone | python3 (182034) is gone from devices 0, 1"},
		},
		{
			"a reused pid is another process",
			func(a, b *model.Snapshot) { b.Processes[1].StartTicks++ },
			[]string{
				"started: 183377 opened | python3 (183377) opened devices 2, 3",
				"gone: 183377 gone | python3 (183377) is gone from devices 2, 3",
			},
		},
		{
			"hung",
			func(a, b *model.Snapshot) {
				b.Devices[0].State, b.Devices[0].StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
			},
			[]string{"state: 0 hung | device 0 is hung: firmware heartbeat stopped"},
		},
		{
			"reset, and back",
			func(a, b *model.Snapshot) {
				b.Devices[0].State = model.StateResetting
				a.Devices[1].State = model.StateLost
			},
			[]string{"state: 0 resetting | device 0 is being reset", "state: 1 ok again | device 1 is ok again, it was lost"},
		},
		{
			"removed and plugged in",
			func(a, b *model.Snapshot) { b.Devices[2].BusID = "0000:99:00.0" },
			[]string{"appeared: 2 appeared | device 2 appeared: n150 at 0000:99:00.0", "removed: 2 removed | device 2 is gone: 0000:03:00.0"},
		},
		{
			"too hot",
			func(a, b *model.Snapshot) { b.Devices[0].Temperature = model.Value(75.0) },
			[]string{"throttle: 0 hot | device 0 is hot: 75 °C (limit 75)"},
		},
		{
			"tripped",
			func(a, b *model.Snapshot) { b.Devices[0].ThermalTrips = model.Value(uint32(1)) },
			[]string{"tripped: 0 tripped | device 0 shut itself down for heat"},
		},
		{
			"slower link, and the full one",
			func(a, b *model.Snapshot) {
				b.Devices[0].PCIe.Gen, b.Devices[0].PCIe.Degraded = model.Value(1), model.Value(true)
				a.Devices[1].PCIe.Degraded = model.Value(true)
			},
			[]string{"link: 0 slow link | device 0 has a slow PCIe link: Gen1 x16 instead of Gen4 x16", "link: 1 link ok | device 1 has its full PCIe link again"},
		},
		{
			"an Ethernet link down, and one up",
			func(a, b *model.Snapshot) {
				join(a, 1, true, false)
				join(b, 1, false, true)
			},
			[]string{
				"ethernet: 0L ↔ 1 link down | Ethernet link 0L ↔ 1: channel 3 down (0 of 1 up)",
				"ethernet: 2 ↔ 3 link up | Ethernet link 2 ↔ 3: all channels are up again",
			},
		},
		{
			"an Ethernet link that trained again",
			func(a, b *model.Snapshot) {
				join(a, 1, true, true)
				join(b, 3, true, true)
			},
			[]string{
				"ethernet: 0L ↔ 1 retrained | Ethernet link 0L ↔ 1 has trained again: 3 retrains since the reset",
				"ethernet: 2 ↔ 3 retrained | Ethernet link 2 ↔ 3 has trained again: 3 retrains since the reset",
			},
		},
		{
			"counters that begin again", func(a, b *model.Snapshot) {
				join(a, 3, true, true)
				join(b, 0, true, true)
			}, nil,
		},
		{
			"a reset that cost a link", func(a, b *model.Snapshot) {
				join(b, 0, false, true)
				for _, i := range []int{0, 2} {
					b.Devices[i].Telemetry.Ports[0].UpBefore = model.Value(true)
				}
			},
			[]string{
				"ethernet: 0 links lost | device 0 after its reset: 0 of 1 Ethernet link up as before, lost channel 3",
				"ethernet: 2 links back | device 2 after its reset: 1 of 1 Ethernet link up as before",
				"ethernet: 0L ↔ 1 link down | Ethernet link 0L ↔ 1: channel 3 down (0 of 1 up; up before the reset)",
			},
		},
		{
			"died with memory",
			func(a, b *model.Snapshot) { a.StaleSlots = nil },
			[]string{"died: 4242 died | python (4242) died and left 128 MiB accounted"},
		},
		{
			"ttmond goes",
			func(a, b *model.Snapshot) { a.Source = model.Daemon },
			[]string{"source: no ttmond | ttmond does not answer any more: the host is read directly"},
		},
		{
			"ttmond comes",
			func(a, b *model.Snapshot) { b.Source = model.Daemon },
			[]string{"source: ttmond | ttmond answers: it sees every user's memory"},
		},
		{
			"unknown values make no events",
			func(a, b *model.Snapshot) {
				b.Devices[0].ThermalTrips = model.Missing[uint32](model.Hung, "")
				b.Devices[0].Temperature = model.Missing[float64](model.Hung, "")
				b.Devices[0].PCIe.Degraded = model.Missing[bool](model.Hung, "")
			},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := tuitest.Host(4, 0), tuitest.Host(4, 1)
			c.change(a, b)
			if diff := cmp.Diff(c.want, between(a, b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// join joins devices 0 and 1, and 2 and 3, by an Ethernet link each.
func join(s *model.Snapshot, retrains uint32, up ...bool) {
	for i, is := range up {
		s.Devices[2*i].Telemetry.Ports = []model.EthernetPort{{
			Channel: 3, Up: model.Value(is), Retrains: model.Value(retrains), Link: model.LinkHere,
			Peer: model.Port{ChipPlace: model.ChipPlace{Device: 2*i + 1}, Channel: 7},
		}}
	}
}

// A temperature that plays around its threshold is one condition, with two
// events: when it began, and when it was over.
// TestPID: the events of a process have its number, the others none.
func TestPID(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(before, after *model.Snapshot)
		want   map[model.EventKind]int
	}{
		{"started", func(a, _ *model.Snapshot) { a.Processes = a.Processes[1:] }, map[model.EventKind]int{model.EventStarted: 182034}},
		{"gone", func(_, b *model.Snapshot) { b.Processes = b.Processes[1:] }, map[model.EventKind]int{model.EventGone: 182034}},
		{"died", func(_, b *model.Snapshot) {
			b.StaleSlots = append(b.StaleSlots, model.StaleSlot{PID: 4711, Region: "x"})
		}, map[model.EventKind]int{model.EventDied: 4711}},
		{"a source", func(_, b *model.Snapshot) { b.Source = model.Daemon }, map[model.EventKind]int{model.EventSource: 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := tuitest.Host(4, 0), tuitest.Host(4, 1)
			tt.change(a, b)
			var d Detector
			d.Next(a)
			got := map[model.EventKind]int{}
			for _, e := range d.Next(b) {
				got[e.Kind] = e.PID
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConditionsAreDamped(t *testing.T) {
	var d Detector
	var j assess.Judge
	var got []string
	for i, temp := range []float64{60, 71, 71, 69, 71, 68.5, 69, 60, 60, 60} {
		s := tuitest.Host(1, i)
		s.Devices[0].Temperature = model.Value(temp)
		j.Assess(s)
		for _, e := range d.Next(s) {
			if e.Kind == model.EventThrottle {
				got = append(got, e.Text)
			}
		}
	}
	want := []string{"device 0 is hot: 71 °C (limit 75)", "device 0 is no longer hot, after 7 s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHeatIsOneCourse: a device that becomes hot, is throttled by heat, and works at its
// full clock while it cools has one event for each change.
func TestHeatIsOneCourse(t *testing.T) {
	var d Detector
	var j assess.Judge
	var got []string
	for i, at := range []struct{ temp, clock float64 }{
		{60, 1000}, {72, 1000}, {72, 1000}, {76, 800}, {76, 800}, {76, 800}, {73, 1000}, {73, 1000}, {73, 1000}, {60, 1000}, {60, 1000}, {60, 1000},
	} {
		s := tuitest.Host(1, i)
		x := &s.Devices[0]
		x.Temperature, x.AICLK, x.AICLKMax = model.Value(at.temp), model.Value(at.clock), model.Value(1000.0)
		x.Activity.Ratio = model.Value(0.5)
		j.Assess(s)
		for _, e := range d.Next(s) {
			if e.Kind == model.EventThrottle {
				got = append(got, e.Text)
			}
		}
	}
	want := []string{
		"device 0 is hot: 72 °C (limit 75)",
		"device 0 is throttled by heat: 76 °C (limit 75), 800 of 1000 MHz",
		"device 0 is no longer throttled by heat, after 4 s; it is still hot: 73 °C (limit 75)",
		"device 0 is no longer hot, after 9 s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFirstSnapshotMakesNoEvents(t *testing.T) {
	var d Detector
	if e := d.Next(tuitest.Host(32, 0)); e != nil {
		t.Errorf("events %v", e)
	}
}

func TestAbout(t *testing.T) {
	e := model.Event{Devices: []string{"a", "b"}}
	if !e.About("a") || e.About("c") {
		t.Error("about the wrong devices")
	}
	if e = (model.Event{}); !e.About("c") {
		t.Error("an event of the host concerns all")
	}
}

// Names of processes come from outside.
func TestNameIsSafe(t *testing.T) {
	p := &model.Process{Cmdline: model.Value("/bin/\x1b[31mevil -x")}
	if n := Name(p); strings.ContainsRune(n, 0x1b) {
		t.Errorf("name %q", n)
	}
	for _, c := range []struct {
		p    model.Process
		want string
	}{
		{model.Process{Cmdline: model.Value("/usr/bin/python3 x.py")}, "python3"},
		{model.Process{Cmdline: model.Value("  "), Name: model.Value("kworker")}, "kworker"},
		{model.Process{}, "process"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := Name(&c.p); got != c.want {
				t.Errorf("name %q, want %q", got, c.want)
			}
		})
	}
}
