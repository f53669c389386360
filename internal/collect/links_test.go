package collect

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
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

// The other end of a link to another host is known by UMD's ids. A user who keeps
// renaming it does not make names without end.
func TestOtherEndsAreLimited(t *testing.T) {
	l := newLinks(hostfs.Root{})
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	learn := func(remote uint64, channel int, at time.Time) model.RemotePort {
		s := &model.Snapshot{Time: at, Devices: []model.Device{{Index: 0, BusID: "0000:01:00.0", Chips: []model.Chip{{}}}}}
		l.learn(s, umd.Found{Descriptor: &umd.Descriptor{
			Chips:   []umd.Chip{{ID: 0, BusID: "0000:01:00.0", Board: -1, UniqueID: 7}},
			Outside: []umd.OutsideLink{{End: umd.End{Chip: 0, Channel: 3}, RemoteID: remote, RemoteChannel: channel}},
		}})
		return l.expected[portAt{"0000:01:00.0", 3}].remote
	}
	if got, want := learn(9, 5, now), (model.RemotePort{Own: 7, Chip: 9, Channel: 5}); got != want {
		t.Fatalf("the other end is %+v, want %+v", got, want)
	}
	if got := learn(10, maxChannels, now); got.Known() {
		t.Errorf("a channel that no chip has: %+v", got)
	}
	names := map[uint64]bool{}
	for i := range uint64(1000) {
		names[learn(100+i, 5, now).Chip] = true
	}
	if len(names) > maxRenames+1 { // and 0: not known
		t.Errorf("a port had %d other ends within a day", len(names))
	}
	if got := learn(42, 5, now.Add(renameSpan)); got.Chip != 42 {
		t.Errorf("a day later: %+v", got)
	}
	for i := range 1000 { // and channels that no chip has cost no memory
		l.learn(&model.Snapshot{Time: now, Devices: []model.Device{{Index: 0, BusID: "0000:01:00.0", Chips: []model.Chip{{}}}}}, umd.Found{Descriptor: &umd.Descriptor{
			Chips:   []umd.Chip{{ID: 0, BusID: "0000:01:00.0", Board: -1, UniqueID: 7}},
			Outside: []umd.OutsideLink{{End: umd.End{Chip: 0, Channel: 100 + i}, RemoteID: 1}},
		}})
	}
	if len(l.expected) != 1 || len(l.renamed) != 1 {
		t.Errorf("%d ports are remembered", len(l.expected))
	}
}
