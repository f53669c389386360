package collect

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// addDriverTotals has the driver's own totals of devices believed, should it offer any:
// it knows of memory that no process accounts for. Which chip of a board it is on is known
// where there is one.
func addDriverTotals(s *model.Snapshot, sweep kmd.Sweep) {
	for i := range sweep.Found {
		f := &sweep.Found[i]
		for j := range s.Devices {
			d := &s.Devices[j]
			if d.Index != f.Device.Index {
				continue
			}
			for pool, total := range f.Memory.Used {
				if total.Known() {
					addDriverTotal(d, model.Pool(pool), total.V)
				}
			}
		}
	}
}

func addDriverTotal(d *model.Device, pool model.Pool, total uint64) {
	memories := []*model.Memory{&d.Memory}
	if len(d.Chips) == 1 {
		memories = append(memories, &d.Chips[0].Memory)
	}
	for _, m := range memories {
		used := &m.Pools[pool].Used
		n, bound, known := used.Best()
		if known && bound != model.Unsure && n > total {
			*used = used.Doubted(model.Unsure)
			m.Doubts = model.AddDoubts(m.Doubts, model.Doubt{Kind: model.SourcesDisagree, Source: model.FromDriver})
			continue
		}
		if pool == model.L1 && known {
			m.Inferred = inferred(m, total-min(total, n))
		}
		*used = model.ExactBytes(total)
		if pool == model.L1 && !(known && n == total) { // which of it are buffers is not known
			*used = used.Doubted(model.Unsure)
		}
		if m.Tracking == "" || m.Tracking == model.TrackAbsent {
			m.Tracking = model.TrackOK
		}
	}
}

// inferred is what circular buffers and kernels may take of L1: what the driver counts
// beside buffers, less those that are accounted for.
func inferred(m *model.Memory, rest uint64) model.Bytes {
	for _, pool := range []model.Pool{model.CB, model.Kernel} {
		if n, _, known := m.Pools[pool].Used.Best(); known {
			rest -= min(rest, n)
		}
	}
	return model.ExactBytes(rest).Doubted(model.Unsure)
}
