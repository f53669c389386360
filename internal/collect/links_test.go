package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// A port says what it was before the chip's last reset, however that was seen.
func TestLinksAcrossAReset(t *testing.T) {
	type moment struct {
		state model.State
		beat  uint32
		up    []bool // of channels 0 and 1; nil: the table is not read
	}
	both, one := []bool{true, true}, []bool{true, false}
	ok := model.StateOK
	for _, tt := range []struct {
		name    string
		moments []moment
		before  []model.Reading[bool] // at the last moment, without reasons
		lost    []bool
	}{
		{"no reset", []moment{{ok, 10, both}, {ok, 20, one}}, []model.Reading[bool]{{}, {}}, []bool{false, false}},
		{
			"a reset that is seen",
			[]moment{{ok, 10, both}, {model.StateResetting, 0, nil}, {ok, 3, nil}, {ok, 13, one}},
			[]model.Reading[bool]{model.Value(true), model.Value(true)},
			[]bool{false, true},
		},
		{
			"a reset between two snapshots",
			[]moment{{ok, 900, both}, {ok, 3, nil}, {ok, 13, one}},
			[]model.Reading[bool]{model.Value(true), model.Value(true)},
			[]bool{false, true},
		},
		{
			"removed and added again",
			[]moment{{ok, 900, one}, {model.StateLost, 0, nil}, {ok, 1, one}},
			[]model.Reading[bool]{model.Value(true), model.Value(false)},
			[]bool{false, false},
		},
		{
			"two resets",
			[]moment{{ok, 900, both}, {ok, 1, one}, {ok, 900, one}, {ok, 2, one}},
			[]model.Reading[bool]{model.Value(true), model.Value(false)},
			[]bool{false, false},
		},
		{"a table that is not read for a while", []moment{{ok, 10, both}, {ok, 20, nil}, {ok, 30, one}}, []model.Reading[bool]{{}, {}}, []bool{false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLinks(hostfs.At(t.TempDir()))
			var s *model.Snapshot
			for _, m := range tt.moments {
				d := model.Device{BusID: "0000:01:00.0", State: m.state}
				if m.beat > 0 {
					d.Heartbeat = model.Value(m.beat)
				}
				for channel, up := range m.up {
					d.Telemetry.Ports = append(d.Telemetry.Ports, model.EthernetPort{Channel: channel, Up: model.Value(up)})
				}
				s = &model.Snapshot{Devices: []model.Device{d}}
				l.add(s)
			}
			for i := range tt.before {
				p := &s.Devices[0].Telemetry.Ports[i]
				if p.UpBefore != tt.before[i] || p.LostInReset() != tt.lost[i] {
					t.Errorf("channel %d: up before %+v, lost %v; want %+v, %v", i, p.UpBefore, p.LostInReset(), tt.before[i], tt.lost[i])
				}
			}
		})
	}
}
