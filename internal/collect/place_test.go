package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/source/shm"
)

// Regions of ever other chips do not add up for as long as ttmond runs.
func TestCapacitiesAreBounded(t *testing.T) {
	c := chips{capacities: map[uint64]shm.Capacity{}}
	for id := range uint64(3 * maxCapacities) {
		c.capacity(id)
	}
	if n := len(c.capacities); n > maxCapacities {
		t.Errorf("%d capacities are remembered, more than %d", n, maxCapacities)
	}
}
