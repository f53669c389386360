package metric

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestFragmentationIsOfOneChip(t *testing.T) {
	chip := func(free, largest uint64) model.Chip {
		var c model.Chip
		c.Memory.Pools[model.DRAM].Free, c.Memory.Pools[model.DRAM].LargestFree = model.Value(free), model.Value(largest)
		return c
	}
	for _, c := range []struct {
		name  string
		chips []model.Chip
		want  float64
	}{
		{"two whole chips", []model.Chip{chip(100, 100), chip(100, 100)}, 0}, // two whole chips are not half a one
		{"one in pieces", []model.Chip{chip(100, 25), chip(100, 100)}, 0.75},
		{"a full chip", []model.Chip{{}, chip(0, 0)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := fragmentation(&model.Device{Chips: c.chips}, model.DRAM); !r.Known() || r.V != c.want {
				t.Errorf("%+v, want %v", r, c.want)
			}
		})
	}
	if r := fragmentation(&model.Device{Chips: []model.Chip{{}}}, model.DRAM); r.Known() {
		t.Errorf("known of a chip whose allocator is not watched: %+v", r)
	}
}
