package mesh

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// galaxy is one of 32 chips: rows of a tray are joined, and its two rows.
func galaxy() *model.Snapshot {
	s := &model.Snapshot{}
	for i := range 32 {
		d := model.Device{Index: i, State: model.StateOK, Tray: 1 + i/8, Slot: 1 + i%8, Chips: make([]model.Chip, 1)}
		link := func(first, to, far int) {
			for c := range 4 {
				d.Telemetry.Ports = append(d.Telemetry.Ports, model.EthernetPort{
					Channel: first + c, Up: model.Value(true), Link: model.LinkHere, Peer: model.Port{ChipPlace: model.ChipPlace{Device: to}, Channel: far + c},
				})
			}
		}
		if i%4 < 3 {
			link(8, i+1, 4)
		}
		if i%8 < 4 {
			link(12, i+4, 0)
		}
		if i%8 == 3 && i < 24 {
			link(8, i+8, 8)
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

func board() *model.Snapshot {
	d := model.Device{State: model.StateOK, Chips: []model.Chip{{Name: "L"}, {Name: "R", Remote: true}}}
	for c := range 2 {
		d.Telemetry.Ports = append(d.Telemetry.Ports, model.EthernetPort{
			Channel: 8 + c, Up: model.Value(c == 0), Link: model.LinkHere, Peer: model.Port{ChipPlace: model.ChipPlace{Name: "R"}, Channel: c},
		})
	}
	return &model.Snapshot{Devices: []model.Device{d}}
}

func TestDraw(t *testing.T) {
	broken := galaxy()
	for k := range broken.Devices[2].Telemetry.Ports { // before the one that is worse
		p := &broken.Devices[2].Telemetry.Ports[k]
		p.Up = model.Value(p.Channel != 9)
	}
	for k := range broken.Devices[4].Telemetry.Ports {
		broken.Devices[4].Telemetry.Ports[k].Up = model.Value(false)
	}
	broken.Devices[17].State = model.StateHung
	many := galaxy() // more than one line has room for
	for i := range 8 {
		for k := range many.Devices[4*i].Telemetry.Ports {
			many.Devices[4*i].Telemetry.Ports[k].Up = model.Value(false)
		}
	}
	retrained := galaxy()
	for i := range 5 {
		retrained.Devices[i].Telemetry.Ports[0].Retrains = model.Value(uint32(i + 1))
	}
	for name, s := range map[string]*model.Snapshot{"galaxy": galaxy(), "galaxy broken": broken, "galaxy many": many, "galaxy retrained": retrained, "n300": board()} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, l := range Draw(mesh.Of(s), 80) {
				if n := len([]rune(l.String())); n > 80 {
					t.Errorf("%d columns: %s", n, l)
				}
				b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
			}
			golden.Check(t, "testdata/"+strings.ReplaceAll(name, " ", "-")+".txt", []byte(b.String()))
		})
	}
	if Draw(mesh.Of(&model.Snapshot{}), 80) != nil {
		t.Error("a host without links has a drawing")
	}
}
