package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A board whose one chip has an allocator that is seen, and whose other chip has
// only what the catalogue says: the two capacities mean different things.
func TestSumAllocators(t *testing.T) {
	measured := model.PoolUse{Total: model.Value[uint64](80), Free: model.Value[uint64](0), LargestFree: model.Value[uint64](0)}
	half := model.PoolUse{Total: model.Value[uint64](80), Free: model.Value[uint64](40), LargestFree: model.Value[uint64](30)}
	nominal := model.PoolUse{Total: model.Value[uint64](92)}
	for name, c := range map[string]struct {
		chips             []model.PoolUse
		total, free, most uint64
		known             bool
	}{
		"both measured":  {[]model.PoolUse{measured, half}, 160, 40, 30, true},
		"one is nominal": {[]model.PoolUse{measured, nominal}, 184, 0, 0, false},
		"both nominal":   {[]model.PoolUse{nominal, nominal}, 184, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &model.Device{}
			d.Memory.Pools[model.L1].Total = model.Value[uint64](184)
			for _, pool := range c.chips {
				var chip model.Chip
				chip.Memory.Pools[model.L1] = pool
				d.Chips = append(d.Chips, chip)
			}
			sumAllocators(d, model.L1)
			got := d.Memory.Pools[model.L1]
			if got.Total.V != c.total || got.Free.Known() != c.known || got.Free.V != c.free || got.LargestFree.V != c.most {
				t.Errorf("total %d, free %d (%v), largest %d", got.Total.V, got.Free.V, got.Free.Known(), got.LargestFree.V)
			}
		})
	}
}
