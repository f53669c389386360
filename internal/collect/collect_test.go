package collect

import (
	"context"
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

func TestNothingThere(t *testing.T) {
	c := New(hostfs.At(t.TempDir()), Options{})
	defer c.Close()
	s := c.Collect(context.Background())
	if s.Host.DriverLoaded || len(s.Devices) != 0 || len(s.Processes) != 0 || s.Simulated {
		t.Errorf("an empty host gave %+v", s)
	}
	if s.Host.DriverVersion.Known() || s.Host.Name == "" || s.Host.Kernel == "" {
		t.Errorf("host: %+v", s.Host)
	}
}

// TestNominal: what the driver did not say comes from the catalogue, marked;
// what it did say stays.
func TestNominal(t *testing.T) {
	c := New(hostfs.At(t.TempDir()), Options{})
	defer c.Close()
	d := model.Device{
		BusID: "0000:41:00.0", Arch: model.Blackhole, Board: model.Value("p150a"),
		PowerLimit: model.Value(123.0), State: model.StateOK,
	}
	c.complete(&d)
	if d.PowerLimit != model.Value(123.0) {
		t.Errorf("the driver's limit became %+v", d.PowerLimit)
	}
	if !d.TemperatureLimit.Known() || !d.TemperatureLimit.Nominal {
		t.Errorf("the catalogue's limit: %+v", d.TemperatureLimit)
	}
	if len(d.Chips) != 1 || !d.Chips[0].Memory.Pools[model.DRAM].Total.Known() {
		t.Errorf("chips: %+v", d.Chips)
	}
}

// TestHiddenDescriptors: those are counted whose processes were not found.
func TestHiddenDescriptors(t *testing.T) {
	use := func(state model.ProcessState, device, fds int) model.Process {
		return model.Process{State: state, Devices: []model.DeviceUse{{Device: device, OpenFDs: model.Value(fds)}}}
	}
	zeros, noList := model.Value([]int{0, 7, 0}), model.Missing[[]int](model.Absent, "driver 2.4.0 keeps no list")
	for _, c := range []struct {
		name      string
		openers   []model.Reading[[]int] // by device
		count     model.Reading[int]     // of the module
		processes []model.Process
		devices   []int // hidden descriptors by device
		host      int
	}{
		{"zeros, unseen", []model.Reading[[]int]{zeros}, none, []model.Process{use(model.Running, 0, 1), use(model.Hidden, 0, 2)}, []int{2}, 0},
		{"zeros, found", []model.Reading[[]int]{zeros}, none, []model.Process{use(model.Running, 0, 1), use(model.Running, 0, 2)}, []int{0}, 0},
		{"no list, all found", []model.Reading[[]int]{noList, noList}, model.Value(2), []model.Process{use(model.Running, 0, 2)}, []int{0, 0}, 0},
		{"no list, unseen", []model.Reading[[]int]{noList, noList}, model.Value(3), []model.Process{use(model.Running, 0, 1)}, []int{0, 0}, 2},
		{"no list, one device", []model.Reading[[]int]{noList}, model.Value(3), nil, []int{3}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &model.Snapshot{Processes: c.processes}
			sweep := kmd.Sweep{OpenFDs: c.count}
			for i, o := range c.openers {
				s.Devices = append(s.Devices, model.Device{Index: i})
				sweep.Found = append(sweep.Found, kmd.Found{Device: s.Devices[i], Openers: o})
			}
			countHidden(s, sweep)
			for i, want := range c.devices {
				if got := s.Devices[i].HiddenFDs; got != want {
					t.Errorf("device %d has %d hidden descriptors, want %d", i, got, want)
				}
			}
			if s.Host.HiddenFDs != c.host {
				t.Errorf("%d hidden descriptors of no known device, want %d", s.Host.HiddenFDs, c.host)
			}
		})
	}
}

var none = model.Missing[int](model.Absent, "the driver lists its openers")

// TestActivity: idle power is learned while no process has the device open, and
// an estimate is made from what is above it.
func TestActivity(t *testing.T) {
	c := New(hostfs.At(t.TempDir()), Options{})
	defer c.Close()
	snapshot := func(watts float64, openers model.Reading[[]int]) *model.Device {
		s := &model.Snapshot{Devices: []model.Device{{
			BusID: "0000:41:00.0", Arch: model.Blackhole, Board: model.Value("p150a"), State: model.StateOK,
			Power: model.Value(watts), PowerLimit: model.Value(150.0),
		}}}
		c.estimate(s, kmd.Sweep{Found: []kmd.Found{{Device: s.Devices[0], Openers: openers}}})
		return &s.Devices[0]
	}
	unused, used, unknown := model.Value[[]int](nil), model.Value([]int{0}), model.Missing[[]int](model.Absent, "driver 2.4.0 keeps no list")
	if d := snapshot(120, used); d.Activity.Ratio.Known() {
		t.Errorf("before it was seen idle: %+v", d.Activity)
	}
	for range 30 {
		snapshot(30, unused)
	}
	if d := snapshot(30, used); d.Activity.Ratio.V != 0 || d.Activity.Basis == "" {
		t.Errorf("at idle power: %+v", d.Activity)
	}
	if d := snapshot(90, used); d.Activity.Ratio.V != 0.5 {
		t.Errorf("halfway between idle and limit: %+v", d.Activity)
	}
	for range 30 {
		snapshot(120, used)    // work does not move what idle is,
		snapshot(120, unknown) // nor what may be work
	}
	if d := snapshot(90, used); d.Activity.Ratio.V != 0.5 {
		t.Errorf("after work: %+v", d.Activity)
	}
	next := New(hostfs.At(t.TempDir()), Options{}) // starts under load
	defer next.Close()
	next.RestoreIdlePower(c.IdlePower())
	c = next
	if d := snapshot(90, used); d.Activity.Ratio.V != 0.5 {
		t.Errorf("after a restart under load: %+v", d.Activity)
	}
	snapshot(40, unused)
	if d := snapshot(40, used); !d.Activity.Ratio.Known() || d.Activity.Ratio.V != 0 {
		t.Errorf("what was restored outweighs what is seen: %+v", d.Activity)
	}
	s := &model.Snapshot{
		Devices:  []model.Device{{Activity: model.Activity{Ratio: model.Value(0.3)}}, {Index: 1, Activity: model.Activity{Ratio: model.Value(0.3)}}},
		Assessed: true, Conditions: []model.Condition{{Kind: model.ConditionThrottled, Device: 0}},
	}
	if withhold(s); s.Devices[0].Activity.Ratio.Known() || !s.Devices[1].Activity.Ratio.Known() {
		t.Errorf("a throttled device is %v busy", s.Devices[0].Activity.Ratio)
	}
}
