package run

import (
	"context"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
)

// sampler looks from outside at what a program holds, where it keeps no ledger.
type sampler struct {
	from    host.Options
	host    *host.Host
	next    time.Time
	program *keep.Program
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
		s.host, s.program = h, keep.Follow(pid, sampleEvery)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if snap, err := s.host.Next(ctx); err == nil {
		s.program.Observe(snap)
	}
}

// run is what was seen of the program; false: no process of it had a device open.
func (s *sampler) run() (runs.Run, bool) {
	if s.program == nil {
		return runs.Run{}, false
	}
	return s.program.Run()
}

// now is what was held when it looked last, by chip and pool.
func (s *sampler) now() map[uint64]map[model.Pool]uint64 {
	held := map[uint64]map[model.Pool]uint64{}
	r, _ := s.run()
	for _, c := range r.Chips() {
		id, _ := strconv.ParseUint(c.ID, 10, 64) // 0: not known
		held[id] = map[model.Pool]uint64{}
		for _, pool := range model.Pools() {
			held[id][pool] = c.Pools[pool.String()].Held
		}
	}
	return held
}

// fill makes the report of what was sampled.
func (s *sampler) fill(r *runreport.Report) {
	seen, ok := s.run()
	if !ok {
		return
	}
	r.Method, r.Run = runreport.Opened, seen
	for _, p := range seen.Pools {
		if p.Peak > 0 {
			r.Method = runreport.Sampled
		}
	}
}

// once is a snapshot of the host that is good enough for its reader, or the last one
// that comes in a second; nil: there is none.
func once(from host.Options, enough func(*model.Snapshot) bool) (snap *model.Snapshot) {
	h, err := host.Open(from)
	if err != nil {
		return nil
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		next, err := h.Next(ctx)
		if err != nil {
			return snap
		}
		if snap = next; enough(snap) {
			return snap
		}
		select {
		case <-ctx.Done():
			return snap
		case <-time.After(onceEvery):
		}
	}
}

// onceEvery is how often the host is asked again.
const onceEvery = 100 * time.Millisecond
