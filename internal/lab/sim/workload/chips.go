package workload

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
)

// chipRef is a chip as a tt-metal program knows it.
type chipRef struct {
	name    string // of the device, with R for an n300's second chip
	id      uint64 // UMD's chip_unique_id
	logical int    // UMD's chip id: its place in the order of PCI addresses
	remote  bool   // without PCIe of its own
}

// chipsOf finds the chips of a workload's devices, numbered as UMD numbers
// them where it sees those devices only: in the order of PCI addresses, and
// chips without an endpoint last.
func chipsOf(s Spec) ([]chipRef, error) {
	c, err := cluster.Load(s.Root + cluster.Dir)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(c.Chips(), func(c cluster.Chip) bool { return !slices.Contains(s.Devices, c.Device) })
	slices.SortStableFunc(found, func(a, b cluster.Chip) int {
		if a.Slot != b.Slot {
			return a.Slot - b.Slot
		}
		return strings.Compare(a.BusID, b.BusID)
	})
	chips := make([]chipRef, len(found))
	for i, c := range found {
		chips[i] = chipRef{name: strconv.Itoa(c.Device), id: c.ID, logical: i, remote: c.Slot > 0}
		if c.Slot > 0 {
			chips[i].name += c.Name
		}
	}
	return chips, nil
}
