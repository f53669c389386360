package lines

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

// Raise takes the peaks that the allocations of a run know into its figures:
// snapshots do not see what was held between two of them. chips says which device a
// chip belongs to.
func Raise(r *runs.Run, l *runs.Lines, chips map[uint64]int) {
	raise(r.Pools, l.Peaks)
	devices := map[int]map[string]uint64{}
	for chip, pools := range l.Chips {
		index, known := chips[chip]
		if !known {
			continue
		}
		if devices[index] != nil { // peaks of two chips need not be at one moment
			devices[index] = map[string]uint64{}
			continue
		}
		devices[index] = pools
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		raise(d.Pools, devices[d.Index])
		for k := range d.Chips {
			if id, err := strconv.ParseUint(d.Chips[k].ID, 10, 64); err == nil {
				raise(d.Chips[k].Pools, l.Chips[id])
			}
		}
	}
}

func raise(pools map[string]runs.Pool, peaks map[string]uint64) {
	for name, n := range peaks {
		if p, known := pools[name]; known && n > p.Peak {
			p.Peak, p.PeakBound = n, model.AtLeast.String()
			pools[name] = p
		}
	}
}
