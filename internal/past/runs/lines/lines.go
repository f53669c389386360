// Package lines finds which lines of a program held how much device memory: from
// the allocations in a recording.
//
// Its place in the flow: it reads internal/past/recording; ttmon diff compares what it
// finds.
package lines

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Of finds the lines of a run in a recording, as far as a moment. places says which
// device a chip belongs to. It returns nil where the blocks of none of its processes
// are recorded.
func Of(r *recording.Reader, until time.Time, run *runs.Run, places map[uint64]int) (*runs.Lines, error) {
	chips, err := r.Chips()
	if err != nil {
		return nil, fmt.Errorf("finding the chips of a recording: %w", err)
	}
	a := &account{
		chips: chips, places: places, run: run, mine: map[uint32]bool{}, lines: map[uint32]runs.Line{}, pools: map[string]*Sums[runs.Line]{},
		perChip: map[uint64]map[string]*total{}, perDevice: map[int]map[string]*total{},
	}
	if err := a.play(r, until); err != nil || !a.told {
		return nil, err
	}
	return a.result(), nil
}

// account is what a run holds while a recording is played.
type account struct {
	chips   map[uint32][]uint64 // of each list
	places  map[uint64]int      // which device a chip belongs to
	run     *runs.Run
	mine    map[uint32]bool      // whether a process of the recording is of the run
	lines   map[uint32]runs.Line // of the places of programs, without a pool
	pools   map[string]*Sums[runs.Line]
	perChip map[uint64]map[string]*total
	// The peaks of a device's chips need not be at one moment: their sum is followed.
	perDevice map[int]map[string]*total
	told      bool
	lost      uint64
}

// total is what is held of a pool somewhere, and the most that was.
type total struct{ now, peak uint64 }

func (t *total) move(bytes uint64, gone bool) {
	if gone {
		bytes = -bytes
	}
	t.now += bytes
}

func (a *account) play(r *recording.Reader, until time.Time) error {
	c := r.Begin()
	for {
		rec, err := c.NextUntil(until)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("finding the lines of a recording: %w", err)
		}
		switch rec.Kind {
		case recording.KindProcess:
			p := rec.Process
			a.mine[p.ID] = slices.ContainsFunc(a.run.Processes, func(x runs.Process) bool { return x.PID == p.PID && (x.StartTicks == p.Start || p.Start == 0) })
		case recording.KindLost:
			if a.mine[rec.ID] {
				a.lost = max(a.lost, rec.Lost)
			}
		}
		for i := range rec.Moves {
			if m := &rec.Moves[i]; a.mine[m.List.Process] {
				a.move(c.State, m, rec.Again)
			}
		}
	}
}

func (a *account) move(state *recording.State, m *recording.Move, again bool) {
	a.told = true
	pool, chips := m.List.Pool, a.chips[m.List.ID]
	if a.pools[pool] == nil {
		a.pools[pool] = NewSums[runs.Line]()
	}
	line := a.line(state, m.Block.Site)
	line.Pool = pool
	a.pools[pool].Move(line, m.BytesOfChip()*uint64(max(len(chips), 1)), m.Gone, again)
	var all []*total
	for _, chip := range chips {
		all = append(all, of(a.perChip, chip, pool))
		if index, known := a.places[chip]; known {
			all = append(all, of(a.perDevice, index, pool))
		}
	}
	for _, t := range all {
		t.move(m.BytesOfChip(), m.Gone)
	}
	for _, t := range all { // a device has the block on all of its chips by now
		t.peak = max(t.peak, t.now)
	}
}

// of is the total of a pool at a place.
func of[P comparable](totals map[P]map[string]*total, at P, pool string) *total {
	if totals[at] == nil {
		totals[at] = map[string]*total{}
	}
	if totals[at][pool] == nil {
		totals[at][pool] = &total{}
	}
	return totals[at][pool]
}

// line is the line that a place stands for.
func (a *account) line(state *recording.State, id uint32) runs.Line {
	line, known := a.lines[id]
	if site, ok := state.Site(id); ok && !known {
		line.Tag = site.Tag
		if f, ok := site.Where(); ok {
			line.File, line.Line, line.Function = f.File, f.Line, f.Function
		}
		a.lines[id] = line
	}
	return line
}

func (a *account) result() *runs.Lines {
	out := &runs.Lines{Used: map[runs.Line]runs.LineUse{}, Peaks: map[string]uint64{}, Chips: peaks(a.perChip), Devices: peaks(a.perDevice), Lost: a.lost}
	for pool, s := range a.pools {
		out.Peaks[pool] = s.Peak
		atPeak := s.AtPeak()
		for line, total := range s.Total {
			out.Used[line] = runs.LineUse{Peak: s.Most[line], AtPeak: atPeak[line].Bytes, Held: s.Now[line].Bytes, Allocs: total.Blocks}
		}
	}
	return out
}

func peaks[P comparable](totals map[P]map[string]*total) map[P]map[string]uint64 {
	out := map[P]map[string]uint64{}
	for at, pools := range totals {
		out[at] = map[string]uint64{}
		for pool, t := range pools {
			out[at][pool] = t.peak
		}
	}
	return out
}
