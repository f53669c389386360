package assess_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
)

// busy is a host of two p150a of which a process uses both, all well.
func busy() *model.Snapshot {
	s := &model.Snapshot{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), Host: model.Host{DriverLoaded: true}}
	for i := range 2 {
		d := sample.P150a(i, i+1)
		d.AICLK, d.AICLKMax = model.Value(1000.0), model.Value(1000.0)
		d.Temperature, d.TemperatureLimit = model.Value(50.0), model.Value(75.0)
		d.Power, d.PowerLimit = model.Value(50.0), model.Value(100.0)
		d.Current, d.CurrentLimit = model.Value(50.0), model.Value(100.0)
		s.Devices = append(s.Devices, d)
	}
	s.Processes = []model.Process{sample.Serve(7, sample.Use(&s.Devices[0], 1, 1), sample.Use(&s.Devices[1], 1, 1))}
	return s
}

func slow(d *model.Device)     { d.AICLK = model.Value(746.0) }
func heat(d *model.Device)     { d.Temperature = model.Value(80.0) }
func slowLink(d *model.Device) { d.PCIe.Gen, d.PCIe.Degraded = model.Value(1), model.Value(true) }

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *model.Snapshot, d *model.Device)
		want   []string // kinds and causes, worst first
		state  model.ConditionKind
	}{
		{"all well", func(*model.Snapshot, *model.Device) {}, nil, model.ConditionOK},
		{"throttled by heat", func(_ *model.Snapshot, d *model.Device) { slow(d); heat(d) }, []string{"throttled heat"}, model.ConditionThrottled},
		{"throttled by power", func(_ *model.Snapshot, d *model.Device) { slow(d); d.Power = model.Value(99.0) }, []string{"throttled power"}, model.ConditionThrottled},
		{"throttled by current", func(_ *model.Snapshot, d *model.Device) { slow(d); d.Current = model.Value(99.0) }, []string{"throttled current"}, model.ConditionThrottled},
		{"a low clock by itself", func(_ *model.Snapshot, d *model.Device) { slow(d) }, nil, model.ConditionOK},
		{"no process uses it", func(s *model.Snapshot, d *model.Device) { slow(d); heat(d); s.Processes = nil }, []string{"hot"}, model.ConditionHot},
		{"its user is hidden", func(s *model.Snapshot, d *model.Device) { slow(d); heat(d); s.Processes, d.HiddenFDs = nil, 1 }, []string{"throttled heat"}, model.ConditionThrottled},
		{"near its limit", func(_ *model.Snapshot, d *model.Device) { d.Temperature = model.Value(70.0) }, []string{"hot"}, model.ConditionHot},
		{"below that", func(_ *model.Snapshot, d *model.Device) { d.Temperature = model.Value(69.9) }, nil, model.ConditionOK},
		{"no limit is known", func(_ *model.Snapshot, d *model.Device) { heat(d); d.TemperatureLimit = model.Reading[float64]{} }, nil, model.ConditionOK},
		{"slow link", func(_ *model.Snapshot, d *model.Device) { slowLink(d) }, []string{"slow_link"}, model.ConditionSlowLink},
		{"idle link of 19.8", func(_ *model.Snapshot, d *model.Device) {
			slowLink(d)
			d.Arch, d.Firmware.Bundle = model.Wormhole, model.Value("19.8.0.0")
		}, nil, model.ConditionOK},
		{"all at once", func(_ *model.Snapshot, d *model.Device) {
			slow(d)
			d.Temperature, d.Power = model.Value(72.0), model.Value(99.0)
			slowLink(d)
			d.ThermalTrips = model.Value(uint32(2))
		}, []string{"throttled power", "hot", "slow_link", "thermal_trips"}, model.ConditionThrottled},
		{"hung, whatever its last values", func(_ *model.Snapshot, d *model.Device) {
			slow(d)
			heat(d)
			d.State, d.StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
		}, []string{"hung heartbeat_stopped"}, model.ConditionHung},
		{"lost", func(_ *model.Snapshot, d *model.Device) { d.State, d.StateReason.Cause = model.StateLost, model.OffBus }, []string{"lost off_bus"}, model.ConditionLost},
		{"unknown", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.StateReason.Cause = model.StateUnknown, model.NoTelemetry
		}, []string{"unknown no_telemetry"}, model.ConditionUnknown},
		{"resetting", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.StateReason.Cause = model.StateResetting, model.ResetWindow
		}, []string{"resetting reset_window"}, model.ConditionResetting},
		{"tripped is no state", func(_ *model.Snapshot, d *model.Device) { d.ThermalTrips = model.Value(uint32(1)) }, []string{"thermal_trips"}, model.ConditionOK},
		{"without a driver", func(s *model.Snapshot, _ *model.Device) { s.Host.Unbound = []string{"0000:09:00.0"} }, []string{"unbound"}, model.ConditionOK},
		{"full", func(_ *model.Snapshot, d *model.Device) {
			sample.Allocate(d, d.Memory.Pools[model.DRAM].Total.V*96/100, 0)
		}, []string{"memory_full"}, model.ConditionOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := busy()
			c.change(s, &s.Devices[1])
			a := assess.Of(s)
			var got []string
			for _, x := range a.Conditions() {
				text := string(x.Kind)
				if x.Cause != "" {
					text += " " + string(x.Cause)
				}
				got = append(got, text)
				if x.Level != assess.LevelOf(x.Kind) || x.Remedy == "" {
					t.Errorf("%+v has no level or remedy", x)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if is := a.Device(1).Kind; is != c.state || a.Device(0).Kind != model.ConditionOK {
				t.Errorf("device 1 is %s, device 0 %s", is, a.Device(0).Kind)
			}
		})
	}
}

// Values that a condition was found by have its level, and no others.
func TestValue(t *testing.T) {
	s := busy()
	slow(&s.Devices[0])
	heat(&s.Devices[0])
	a := assess.Of(s)
	for k, want := range map[model.FactKind]model.Level{
		model.FactTemperature: model.Warning, model.FactClock: model.Warning, model.FactPower: model.Fine, model.FactLinkGen: model.Fine,
	} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			if got := a.Value(0, k); got != want {
				t.Errorf("%s of device 0 is %v, want %v", k, got, want)
			}
			if got := a.Value(1, k); got != model.Fine {
				t.Errorf("%s of device 1 is %v", k, got)
			}
		})
	}
}

// judge assesses a row of snapshots a second apart, and returns which kinds
// device 0 was in at each.
func judge(t *testing.T, n int, change func(i int, d *model.Device)) (kinds []model.ConditionKind, last *model.Snapshot) {
	t.Helper()
	var j assess.Judge
	for i := range n {
		s := busy()
		s.Time = s.Time.Add(time.Duration(i) * time.Second)
		change(i, &s.Devices[0])
		j.Assess(s)
		kinds = append(kinds, assess.Of(s).Device(0).Kind)
		last = s
	}
	return kinds, last
}

const (
	ok        = model.ConditionOK
	throttled = model.ConditionThrottled
	hot       = model.ConditionHot
	hung      = model.ConditionHung
)

// What comes and goes with a value is seen twice before it holds, and missed
// twice before it is over; it began when it was first seen.
func TestDamping(t *testing.T) {
	bad := []bool{false, true, false, true, true, true, false, true, false, false, false}
	got, _ := judge(t, len(bad), func(i int, d *model.Device) {
		if bad[i] {
			slow(d)
			d.Power = model.Value(100.0)
		}
	})
	if want := []model.ConditionKind{ok, ok, ok, ok, throttled, throttled, throttled, throttled, throttled, ok, ok}; !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	_, last := judge(t, 6, func(i int, d *model.Device) {
		if i >= 2 {
			slow(d)
			d.Power = model.Value(100.0)
		}
	})
	if c := assess.Of(last).Device(0); !c.Since.Equal(last.Time.Add(-3*time.Second)) || c.Older {
		t.Errorf("it began at %v (older %v), want 3 s before %v", c.Since, c.Older, last.Time)
	}
}

// The values of a condition that is about to be over are those of now.
func TestNoOldValues(t *testing.T) {
	_, last := judge(t, 4, func(i int, d *model.Device) {
		d.Power = model.Value(100.0)
		if i < 3 {
			slow(d)
		}
	})
	c := assess.Of(last).Device(0)
	if i := slices.IndexFunc(c.Facts, func(f model.Fact) bool { return f.Kind == model.FactClock }); c.Kind != throttled || c.Facts[i].Value != 1000 {
		t.Errorf("%+v", c)
	}
}

// A temperature that plays around its threshold is one condition.
func TestHysteresis(t *testing.T) {
	temps := []float64{60, 71, 71, 69, 71, 68.5, 69, 68, 67.9, 67, 67}
	got, _ := judge(t, len(temps), func(i int, d *model.Device) { d.Temperature = model.Value(temps[i]) })
	if want := []model.ConditionKind{ok, ok, hot, hot, hot, hot, hot, hot, hot, ok, ok}; !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestIdleIsNotThrottled: the firmware lowers the clock of a device that does nothing,
// however warm it still is, and whatever process has it open.
func TestIdleIsNotThrottled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Device)
		want   model.ConditionKind
	}{
		"nothing says what it does":     {func(*model.Device) {}, throttled},
		"it draws what it does at work": {func(d *model.Device) { d.Activity.Ratio = model.Value(0.4) }, throttled},
		"it draws what it does idle":    {func(d *model.Device) { d.Activity.Ratio = model.Value(0.03) }, hot},
		"programs run":                  {func(d *model.Device) { d.Work = model.Work{Busy: model.Value(0.4)} }, throttled},
		"no program runs":               {func(d *model.Device) { d.Work = model.Work{Busy: model.Value(0.0)} }, hot},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := judge(t, 3, func(_ int, d *model.Device) {
				slow(d)
				d.Temperature = d.TemperatureLimit
				c.change(d)
			})
			if got[2] != c.want {
				t.Errorf("%s, want %s", got[2], c.want)
			}
		})
	}
}

// What the driver states is so at once, and over at once; since when, it knows
// best.
func TestStatesAreNotDamped(t *testing.T) {
	got, last := judge(t, 5, func(i int, d *model.Device) {
		if i == 1 || i == 2 || i == 4 {
			d.State, d.StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
			d.HeartbeatAge = model.Value(41.0)
		}
	})
	if want := []model.ConditionKind{ok, hung, hung, ok, hung}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if c := assess.Of(last).Device(0); !c.Since.Equal(last.Time.Add(-41 * time.Second)) {
		t.Errorf("hung since %v", c.Since)
	}
}

// TestBeginningIsKept: a condition whose cause changes, or whose beginning a sample
// does not say, began when it began.
func TestBeginningIsKept(t *testing.T) {
	_, last := judge(t, 4, func(i int, d *model.Device) {
		d.State, d.StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
		switch i {
		case 0, 1:
			d.HeartbeatAge = model.Value(41.0 + float64(i))
		case 2:
			d.HeartbeatAge = model.Missing[float64](model.Pending, "late")
		case 3:
			d.StateReason = model.StateReason{Cause: model.ReadBlocked, Since: busy().Time.Add(2 * time.Second)}
		}
	})
	if c := assess.Of(last).Device(0); !c.Since.Equal(last.Time.Add(-3*time.Second - 41*time.Second)) {
		t.Errorf("hung since %v, %v before the last sample", c.Since, last.Time.Sub(c.Since))
	}
}

// What held already at the first look is at least that old; at the first look
// itself nothing is known about it.
func TestOlder(t *testing.T) {
	_, first := judge(t, 1, func(_ int, d *model.Device) { heat(d) })
	if c := assess.Of(first).Device(0); c.Kind != hot || !c.Since.IsZero() {
		t.Errorf("at the first look: %+v", c)
	}
	_, later := judge(t, 3, func(_ int, d *model.Device) { heat(d) })
	if c := assess.Of(later).Device(0); !c.Older || !c.Since.Equal(later.Time.Add(-2*time.Second)) {
		t.Errorf("later: %+v", c)
	}
}

// Samples that are close to each other are one: a screen that is drawn ten
// times a second damps as one that is drawn once.
func TestSamplesApart(t *testing.T) {
	var j assess.Judge
	at := func(ms int, bad bool) model.ConditionKind {
		s := busy()
		s.Time = s.Time.Add(time.Duration(ms) * time.Millisecond)
		if bad {
			heat(&s.Devices[0])
		}
		j.Assess(s)
		return assess.Of(s).Device(0).Kind
	}
	for _, c := range []struct {
		ms   int
		bad  bool
		want model.ConditionKind
	}{{0, false, ok}, {1000, true, ok}, {1100, true, ok}, {1200, true, ok}, {1500, true, hot}, {1600, false, hot}, {1700, false, hot}, {2100, false, hot}, {2600, false, ok}} {
		if got := at(c.ms, c.bad); got != c.want {
			t.Errorf("at %d ms: %s, want %s", c.ms, got, c.want)
		}
	}
}

// A successor knows since when conditions hold.
func TestRestore(t *testing.T) {
	var j, k assess.Judge
	s := busy()
	heat(&s.Devices[0])
	j.Assess(s)
	k.Restore(j.Courses())
	next := busy()
	next.Time = s.Time.Add(time.Hour)
	heat(&next.Devices[0])
	k.Assess(next)
	if c := assess.Of(next).Device(0); !c.Since.Equal(s.Time) || !c.Older {
		t.Errorf("%+v", c)
	}
	over := busy()
	over.Time = next.Time.Add(time.Hour)
	k = assess.Judge{}
	k.Restore(j.Courses())
	k.Assess(over)
	if c := assess.Of(over).Device(0); c.Kind != ok {
		t.Errorf("what is over was restored: %+v", c)
	}
}

func TestThresholds(t *testing.T) {
	limits := assess.Default()
	limits.HotMargin = 20
	j := assess.NewJudge(limits)
	s := busy()
	s.Devices[0].Temperature = model.Value(56.0)
	j.Assess(s)
	if assess.Of(s).Device(0).Kind != hot {
		t.Error("the margin was not used")
	}
	for name, bad := range map[string]assess.Thresholds{
		"margin": {HotMargin: -1, SlowClock: 1, AtLimit: 1, MemoryFull: 1},
		"clock":  {SlowClock: 1.1, AtLimit: 1, MemoryFull: 1},
		"memory": {SlowClock: 1, AtLimit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if bad.Check() == nil {
				t.Errorf("%+v is accepted", bad)
			}
		})
	}
	if err := assess.Default().Check(); err != nil {
		t.Error(err)
	}
}

func TestRows(t *testing.T) {
	s := busy()
	for i := range s.Devices {
		s.Devices[i].State, s.Devices[i].StateReason = model.StateLost, model.StateReason{Cause: model.DriverUnloaded, Since: s.Time}
	}
	s.Alerts = []model.Alert{
		{Name: "ChipLost", BusID: s.Devices[0].BusID, Condition: model.ConditionLost},
		{Name: "ChipLost", BusID: s.Devices[1].BusID, Condition: model.ConditionLost},
		{Name: "Mine", BusID: s.Devices[1].BusID},
		{Name: "Quiet", Silenced: true},
	}
	a := assess.Of(s)
	rows := a.Rows()
	if len(rows) != 1 || !slices.Equal(rows[0].Devices, []int{0, 1}) || len(rows[0].Alerts) != 2 {
		t.Errorf("what is the same of two devices makes %+v", rows)
	}
	if rest := a.Alerts(); len(rest) != 1 || rest[0].Name != "Mine" {
		t.Errorf("alerts in no row: %+v", rest)
	}
	s = busy()
	slow(&s.Devices[1])
	heat(&s.Devices[1])
	slowLink(&s.Devices[1])
	slowLink(&s.Devices[0])
	s.Host.Unbound = []string{"x"}
	rows = assess.Of(s).Rows()
	if len(rows) != 3 || rows[0].Conditions[0].Kind != model.ConditionUnbound || rows[1].Devices[0] != 1 || len(rows[1].Conditions) != 2 || rows[2].Devices[0] != 0 {
		t.Errorf("%+v", rows)
	}
}

// Devices that were not asked for have no conditions.
func TestPart(t *testing.T) {
	s := busy()
	heat(&s.Devices[0])
	var j assess.Judge
	j.Assess(s)
	s.Devices = s.Devices[1:]
	if list := assess.Of(s).Conditions(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestRanking(t *testing.T) {
	if !slices.IsSortedFunc(model.ConditionKinds, func(a, b model.ConditionRow) int { return int(b.Level) - int(a.Level) }) {
		t.Error("kinds of one level do not stand together")
	}
	worse := assess.Tally{model.ConditionHung: 1}
	better := assess.Tally{model.ConditionThrottled: 30, ok: 2}
	if worse.Compare(better) >= 0 || better.Compare(assess.Tally{ok: 40}) >= 0 || worse.Level() != model.Critical || better.Count() != 32 {
		t.Error("hosts are not ordered by their worst device")
	}
	if assess.LevelOf("of-the-future") != model.Info || assess.CompareKinds("of-the-future", model.ConditionLost) <= 0 {
		t.Error("a kind that is not known outranks one that is")
	}
}

// The firmware's own word goes before what can be concluded.
func TestThrottledByFirmware(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason model.ClockReason
		limit  model.ClockLimit
		want   model.Cause // "": not throttled
	}{
		{"heat", model.ClockAtCeiling, model.LimitThermal, model.ByHeat},
		{"board power", model.ClockAtCeiling, model.LimitBoardPower, model.ByPower},
		{"the highest clock", model.ClockAtCeiling, model.LimitFMax, ""},
		{"as work asks", model.ClockAtFloor, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := busy()
			d := &s.Devices[0]
			slow(d)
			heat(d) // from which heat would be concluded
			d.Telemetry.Clock = model.ClockControl{Reason: model.Value(tt.reason), Limit: tt.limit, FloorArbiter: model.Value(model.FloorBusy)}
			c, is := assess.Of(s).Find(d.Index, model.ConditionThrottled)
			if is != (tt.want != "") || c.Cause != tt.want || c.Concluded {
				t.Errorf("throttled %v: %+v", is, c)
			}
		})
	}
}
