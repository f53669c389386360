package top

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// linked is an n300 with a second board on a cable: one channel on the board is
// down, both on the cable.
func linked(remote model.Chip) *model.Snapshot {
	port := func(channel int, up bool, to model.ChipPlace) model.EthernetPort {
		return model.EthernetPort{Channel: channel, Up: model.Value(up), Link: model.LinkHere, Peer: model.Port{ChipPlace: to, Channel: channel}}
	}
	remote.Name, remote.Remote = "R", true
	a := model.Device{State: model.StateOK, Chips: []model.Chip{{Name: "L"}, remote}}
	a.Telemetry.Ports = []model.EthernetPort{
		port(8, true, model.ChipPlace{Name: "R"}), port(9, false, model.ChipPlace{Name: "R"}),
		port(14, false, model.ChipPlace{Device: 1}), port(15, false, model.ChipPlace{Device: 1}),
	}
	b := model.Device{Index: 1, State: model.StateOK, Chips: make([]model.Chip, 1)}
	b.Telemetry.Ports = []model.EthernetPort{port(14, false, model.ChipPlace{Name: "L"}), port(15, false, model.ChipPlace{Name: "L"})}
	return &model.Snapshot{Devices: []model.Device{a, b}}
}

// TestLinksPage: broken links are named on the first line and listed first; remote
// chips have their source or the reason why they are not read.
func TestLinksPage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		remote model.Chip
		want   string
	}{
		{"not read", model.Chip{}, "0R              not read: ttmond does not read chips behind Ethernet"},
		{"read by the exporter", model.Chip{Temperature: model.Value(41.0), Power: model.Value(17.0), SensorsFrom: model.ByExporter}, "0R              41 °C, 17 W (tt-telemetry)"},
		{"the exporter says nothing", model.Chip{Temperature: model.Missing[float64](model.Absent, "the exporter is away")}, "0R              not read: the exporter is away"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := openAfter(t, 1, 1, 100, 30)
			st.make = func(int, int) *model.Snapshot { return linked(tt.remote) }
			st.run(1)
			screen := st.keys("L").draw()
			if !st.has(tt.want) {
				t.Errorf("no %q on\n%s", tt.want, screen)
			}
			if !st.has("Ethernet: 1 of 4 links up: 0L ↔ 1 down, 0L ↔ 0R weak") {
				t.Errorf("the first line does not name the links:\n%s", screen)
			}
			_, list, _ := strings.Cut(screen, "Links ─")
			if down, weak := strings.Index(list, "0L ↔ 1 "), strings.Index(list, "0L ↔ 0R"); down < 0 || weak < down {
				t.Errorf("the worst is not first:\n%s", screen)
			}
		})
	}
}
