package lines

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Raise takes the peaks that the allocations of a run know into its figures:
// snapshots do not see what was held between two of them.
func Raise(r *runs.Run, l *runs.Lines) {
	raise(r.Pools, l.Peaks)
	for i := range r.Devices {
		d := &r.Devices[i]
		raise(d.Pools, l.Devices[d.Index])
		for k := range d.Chips {
			if id, err := strconv.ParseUint(d.Chips[k].ID, 10, 64); err == nil {
				raise(d.Chips[k].Pools, l.Chips[id])
			}
		}
	}
}

func raise(pools map[string]runs.Pool, peaks map[string]uint64) {
	if pools == nil {
		return // nothing is known of the device
	}
	for name, n := range peaks {
		if p := pools[name]; n > p.Peak {
			p.Peak, p.PeakBound = n, model.AtLeast.String()
			pools[name] = p
		}
	}
}
