package run

import (
	"context"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
)

// sampler looks from outside at what a program holds, where it keeps no ledger.
type sampler struct {
	from host.Options
	host *host.Host
	next time.Time
	seen map[sampleKey]sampled
	// opened: the program or one of its children had a device open.
	opened bool
}

type sampleKey struct {
	chip uint64
	pool model.Pool
}

type sampled struct {
	peak, last uint64
	at         float64
	unsure     bool
}

const (
	sampleAfter = 2 * time.Second // time for a ledger to come
	sampleEvery = time.Second
)

func (s *sampler) close() {
	if s.host != nil {
		s.host.Close()
	}
}

// look notes what the program and its children hold now.
func (s *sampler) look(pid int, started, now time.Time) {
	if now.Sub(started) < sampleAfter || now.Before(s.next) {
		return
	}
	s.next = now.Add(sampleEvery)
	if s.host == nil {
		h, err := host.Open(s.from)
		if err != nil {
			return
		}
		s.host, s.seen = h, map[sampleKey]sampled{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := s.host.Next(ctx)
	if err != nil {
		return
	}
	sums := held(snap, pid)
	s.opened = s.opened || opens(snap, pid)
	for key, x := range s.seen {
		x.last = sums[key].bytes
		s.seen[key] = x
	}
	for key, sum := range sums {
		x := s.seen[key]
		if x.last = sum.bytes; sum.bytes > x.peak {
			x.peak, x.at, x.unsure = sum.bytes, now.Sub(started).Seconds(), sum.unsure
		}
		s.seen[key] = x
	}
}

// sum is one of what processes hold.
type sum struct {
	bytes  uint64
	unsure bool
}

// held adds up what the program and its children hold in a snapshot.
func held(snap *model.Snapshot, pid int) map[sampleKey]sum {
	sums := map[sampleKey]sum{}
	for i := range snap.Processes {
		p := &snap.Processes[i]
		if !descends(snap, p, pid) {
			continue
		}
		for _, u := range p.Devices {
			for _, c := range u.Chips {
				add(sums, c.ChipID, &c.Memory)
			}
		}
	}
	return sums
}

// add adds what a process holds of a chip.
func add(sums map[sampleKey]sum, chip uint64, memory *model.PoolBytes) {
	for pool, b := range memory {
		n, bound, ok := b.Best()
		if !ok {
			continue
		}
		key := sampleKey{chip, model.Pool(pool)}
		x := sums[key]
		sums[key] = sum{x.bytes + n, x.unsure || bound == model.Unsure}
	}
}

// now is what was held when it looked last, by chip and pool.
func (s *sampler) now() map[uint64]map[model.Pool]uint64 {
	held := map[uint64]map[model.Pool]uint64{}
	for key, x := range s.seen {
		if held[key.chip] == nil {
			held[key.chip] = map[model.Pool]uint64{}
		}
		held[key.chip][key.pool] = x.last
	}
	return held
}

// descends reports whether a process is the given one or a child of its children,
// as far as the snapshot has them.
func opens(snap *model.Snapshot, pid int) bool {
	return slices.ContainsFunc(snap.Processes, func(p model.Process) bool {
		return len(p.Devices) > 0 && descends(snap, &p, pid)
	})
}

func descends(snap *model.Snapshot, p *model.Process, pid int) bool {
	for range len(snap.Processes) + 1 {
		if p.PID == pid || p.PPID == pid {
			return true
		}
		i := slices.IndexFunc(snap.Processes, func(q model.Process) bool { return q.PID == p.PPID })
		if i < 0 {
			return false
		}
		p = &snap.Processes[i]
	}
	return false
}

// fill makes the report of what was sampled.
func (s *sampler) fill(r *runreport.Report) {
	if s.opened {
		r.Method = runreport.Opened
	}
	for key, x := range s.seen {
		if x.peak == 0 {
			continue
		}
		r.Method = runreport.Sampled
		i := slices.IndexFunc(r.Chips, func(c runreport.Chip) bool { return c.ID == key.chip })
		if i < 0 {
			r.Chips = append(r.Chips, runreport.Chip{ID: key.chip})
			i = len(r.Chips) - 1
		}
		bound := model.AtLeast // it is sampled once a second
		if x.unsure {
			bound = model.Unsure
		}
		r.Chips[i].Pools = append(r.Chips[i].Pools, runreport.Pool{
			Pool: key.pool, PoolName: key.pool.String(), Peak: x.peak, Bound: bound, PeakAt: x.at, LeftUnknown: true,
		})
	}
	r.Sort()
}

// once is a snapshot of the host, taken in a second.
func once(from host.Options) (*model.Snapshot, error) {
	h, err := host.Open(from)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return h.Next(ctx)
}

// nameChips gives the chips of this host their numbers and boards.
func nameChips(report *runreport.Report, from host.Options) {
	if len(report.Chips) == 0 {
		return
	}
	snap, err := once(from)
	if err != nil {
		return
	}
	for i := range snap.Devices {
		d := &snap.Devices[i]
		for _, chip := range d.Chips {
			if id, ok := chip.ID.Get(); ok {
				report.NameChip(id, d.Index, d.Board.V, chip.Name)
			}
		}
	}
}
