package assess_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// row is a host of devices in a row, two channels between neighbours; every
// channel that down names by its device and number is down.
func row(n int, down ...[2]int) *model.Snapshot {
	s := &model.Snapshot{}
	for i := range n {
		d := model.Device{Index: i, BusID: string(rune('a' + i)), State: model.StateOK, Chips: make([]model.Chip, 1)}
		d.Telemetry.State = model.TelemetryOK
		for c := range 4 {
			to, far := i-1, c+2
			if c >= 2 {
				to, far = i+1, c-2
			}
			if to < 0 || to >= n {
				continue
			}
			d.Telemetry.Ports = append(d.Telemetry.Ports, model.EthernetPort{
				Channel: c, Up: model.Value(!slices.Contains(down, [2]int{i, c})), Link: model.LinkHere,
				Peer: model.Port{ChipPlace: model.ChipPlace{Device: to}, Channel: far},
			})
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		snap  *model.Snapshot
		kinds []model.ConditionKind // of the devices
		rows  []string
	}{
		{"all up", row(3), []model.ConditionKind{"ok", "ok", "ok"}, nil},
		{"one channel", row(3, [2]int{0, 2}), []model.ConditionKind{"weak_link", "weak_link", "ok"}, []string{"0, 1 weak link: 0 ↔ 1 channel 2 down (1 of 2 up)"}},
		{"the last is cut off", row(3, [2]int{1, 2}, [2]int{1, 3}), []model.ConditionKind{"ok", "link_down", "link_down"}, []string{"1, 2 link down: 1 ↔ 2 channels 2, 3 down (0 of 2 up); cut off: 2"}},
		{"a device that is reset takes its links with it", func() *model.Snapshot {
			s := row(2, [2]int{0, 2}, [2]int{0, 3})
			s.Devices[1].State = model.StateResetting
			return s
		}(), []model.ConditionKind{"ok", "resetting"}, []string{"1 resetting: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := assess.Of(tt.snap)
			for i, want := range tt.kinds {
				if got := a.Device(i).Kind; got != want {
					t.Errorf("device %d is %s, want %s", i, got, want)
				}
			}
			var rows []string
			for _, r := range words.Troubles(tt.snap) {
				rows = append(rows, r.Name+" "+r.What+": "+r.Facts)
			}
			if !slices.Equal(rows, tt.rows) {
				t.Errorf("rows %q, want %q", rows, tt.rows)
			}
		})
	}
}

// TestCable: a cable is checked only where there is one.
func TestCable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a, b *model.Device)
		want   model.Remedy
	}{
		"two boards": {func(a, b *model.Device) { a.Serial, b.Serial = model.Value("A"), model.Value("B") }, model.RemedyLink},
		"one board":  {func(a, b *model.Device) { a.Serial, b.Serial = model.Value("A"), model.Value("A") }, model.RemedyInnerLink},
		"one tray":   {func(a, b *model.Device) { a.Tray, b.Tray = 2, 2 }, model.RemedyInnerLink},
		"two trays":  {func(a, b *model.Device) { a.Tray, b.Tray = 2, 3 }, model.RemedyLink},
	} {
		t.Run(name, func(t *testing.T) {
			s := row(2, [2]int{0, 2})
			c.change(&s.Devices[0], &s.Devices[1])
			if x, ok := assess.Of(s).Find(0, model.ConditionWeakLink); !ok || x.Remedy != c.want {
				t.Errorf("%q, want %q", x.Remedy, c.want)
			}
		})
	}
}

// TestCutOffStandsAtItsLink: what a link cuts off is said of its ends, and not of the
// ends of another that is down.
func TestCutOffStandsAtItsLink(t *testing.T) {
	s := row(5, [2]int{0, 2}, [2]int{0, 3}, [2]int{3, 2}, [2]int{3, 3})
	var got []string
	for _, r := range words.Troubles(s) {
		_, cut, _ := strings.Cut(r.Facts, "; ")
		got = append(got, r.Name+" "+cut)
	}
	if want := []string{"0, 1 cut off: 0", "3, 4 cut off: 4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What the firmware knows of GDDR and of the clock is a condition with words
// for all of it.
func TestOnChip(t *testing.T) {
	s := row(1)
	d := &s.Devices[0]
	d.Telemetry.Modules = []model.MemoryModule{
		{Index: 0, Trained: model.Value(true)}, {Index: 1, Trained: model.Value(false)}, {Index: 2, Trained: model.Value(true), UncorrectedReads: model.Value(true)},
	}
	d.Telemetry.Clock = model.ClockControl{Reason: model.Value(model.ClockAtCeiling), Limit: model.LimitHost, FloorArbiter: model.Value(model.FloorBusy)}
	got := map[model.ConditionKind]string{}
	for _, c := range assess.Of(s).About(0) {
		got[c.Kind] = words.ConditionLine(s, &c) + " → " + words.Remedy(s, &c, []int{0})
	}
	for k, want := range map[model.ConditionKind]string{
		model.ConditionMemoryFailed: "module 1", model.ConditionMemoryErrors: "module 2", model.ConditionThrottled: "throttled by software",
	} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			if !strings.Contains(got[k], want) || strings.HasSuffix(got[k], "→ ") {
				t.Errorf("%q", got[k])
			}
		})
	}
	d.Telemetry.State = model.TelemetryStalled
	if _, ok := assess.Of(s).Find(0, model.ConditionReadStalled); !ok {
		t.Error("a read that does not return is no condition")
	}
}
