package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// TestGalaxyLanes: a link of one lane is no fault where a Galaxy has no more.
func TestGalaxyLanes(t *testing.T) {
	for _, c := range []struct {
		name       string
		slot       int
		gen, width int
		want       bool
	}{
		{"one lane by design", 3, 5, 1, false},
		{"one lane, its place is not known", 0, 5, 1, false},
		{"eight lanes", 6, 5, 8, false},
		{"one of eight lanes", 6, 5, 1, true},
		{"one lane, and slower", 3, 4, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &model.Device{Slot: c.slot, PCIe: model.PCIe{
				Gen: model.Value(c.gen), GenMax: model.Value(5), SlotGenMax: model.Value(5),
				Width: model.Value(c.width), WidthMax: model.Value(8), SlotWidthMax: model.Value(16),
			}}
			d.PCIe.Degraded = kmd.Degraded(&d.PCIe)
			if setLanes(d); d.PCIe.Degraded != model.Value(c.want) {
				t.Errorf("degraded: %+v", d.PCIe.Degraded)
			}
		})
	}
}
