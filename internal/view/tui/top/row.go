package top

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// id is the identity of a process.
type id struct {
	pid   int
	start uint64
}

// row is one line of the process table.
type row struct {
	p       *model.Process
	now     time.Time
	devices []int
	mem     model.PoolBytes // over its devices
	room    uint64          // DRAM of its devices together; 0: not known
	parent  bool            // stands for a parent that uses no device itself
	below   int             // of a parent: how many processes it stands for
	depth   int
	branch  string // what the tree draws before the command
}

func (r *row) id() id { return id{r.p.PID, r.p.StartTicks} }

func makeRow(p *model.Process, now time.Time) row {
	r := row{p: p, now: now}
	for i := range p.Devices {
		if d := p.Devices[i].Device; d != model.NoDevice {
			r.devices = append(r.devices, d)
		}
	}
	for _, q := range model.Pools() {
		r.mem[q] = p.Held(q)
	}
	return r
}

// roomOf is how much DRAM devices have together; 0 where one does not tell.
func roomOf(s *model.Snapshot, devices []int) (sum uint64) {
	for _, index := range devices {
		d := s.Device(index)
		if d == nil || !d.Memory.Pools[model.DRAM].Total.Known() {
			return 0
		}
		sum += d.Memory.Pools[model.DRAM].Total.V
	}
	return sum
}

// share is how much of its devices' DRAM the process holds.
func (r *row) share() (ratio float64, bound model.Bound, ok bool) {
	n, bound, known := r.mem[model.DRAM].Best()
	if !known || r.room == 0 {
		return 0, bound, false
	}
	return float64(n) / float64(r.room), bound, true
}

// command is what the process was started with, or what else is known of it.
func (r *row) command() string {
	if r.parent {
		return "(parent; uses no device itself)"
	}
	return words.Command(r.p)
}

// age is how long the process has run; ok is false where that is not known.
func (r *row) age() (time.Duration, bool) {
	if r.p.StartTime.IsZero() {
		return 0, false
	}
	return max(r.now.Sub(r.p.StartTime), 0), true
}
