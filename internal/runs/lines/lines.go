// Package lines finds which lines of a program held how much device memory: from
// the allocations in a recording.
//
// Its place in the flow: it reads internal/recording; ttmon diff compares what it
// finds.
package lines

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/runs"
)

// Of finds the lines of a run in a recording, as far as a moment. places says which
// device a chip belongs to. It returns nil where the blocks of none of its processes
// are recorded.
func Of(r *recording.Reader, until time.Time, run *runs.Run, places map[uint64]int) (*runs.Lines, error) {
	chips, err := r.Chips()
	if err != nil {
		return nil, fmt.Errorf("finding the chips of a recording: %w", err)
	}
	a := newAccount(chips, places, run)
	if err := a.play(r, until); err != nil || !a.told {
		return nil, err
	}
	// What each line held at a peak is known when it is known which one was the
	// highest: the events are played again.
	b := newAccount(chips, places, run)
	b.stops = map[uint64][]string{}
	for pool, t := range a.totals {
		b.stops[t.peakAt] = append(b.stops[t.peakAt], pool)
	}
	if err := b.play(r, until); err != nil {
		return nil, err
	}
	return b.lines(), nil
}

// account is what a run holds while a recording is played.
type account struct {
	chips   map[uint32][]uint64 // of each list
	run     *runs.Run
	mine    map[uint32]bool // whether a process of the recording is of the run
	live    map[uint32]*list
	used    map[runs.Line]*runs.LineUse
	totals  map[string]*total
	perChip map[uint64]map[string]*total
	// The peaks of a device's chips need not be at one moment: their sum is followed.
	perDevice map[int]map[string]*total
	places    map[uint64]int      // which device a chip belongs to
	stops     map[uint64][]string // pools that are at their peak after an event
	events    uint64
	told      bool
	lost      uint64
}

// total is what is held of a pool.
type total struct {
	now, peak uint64
	peakAt    uint64 // event
}

func (t *total) add(n, event uint64) {
	if t.now += n; t.now > t.peak {
		t.peak, t.peakAt = t.now, event
	}
}

// list is a list of blocks that are held.
type list struct {
	def    recording.List
	chips  []uint64
	blocks map[uint64]held // by address
}

type held struct {
	use   *runs.LineUse
	bytes uint64 // on one chip
}

func newAccount(chips map[uint32][]uint64, places map[uint64]int, run *runs.Run) *account {
	return &account{
		chips: chips, places: places, run: run, mine: map[uint32]bool{}, live: map[uint32]*list{}, used: map[runs.Line]*runs.LineUse{},
		totals: map[string]*total{}, perChip: map[uint64]map[string]*total{},
		perDevice: map[int]map[string]*total{},
	}
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
		a.take(c.State, &rec)
	}
}

func (a *account) take(state *recording.State, rec *recording.Record) {
	switch rec.Kind {
	case recording.KindProcess:
		p := rec.Process
		a.mine[p.ID] = slices.ContainsFunc(a.run.Processes, func(x runs.Process) bool { return x.PID == p.PID && (x.StartTicks == p.Start || p.Start == 0) })
	case recording.KindAlloc:
		a.alloc(state, rec)
	case recording.KindFree:
		a.drop(a.live[rec.ID], rec.Block.Addr)
	case recording.KindClear, recording.KindClosed:
		a.clear(a.live[rec.ID])
	case recording.KindEnded:
		for id, l := range a.live {
			if _, _, open := state.List(id); !open {
				a.clear(l)
			}
		}
	case recording.KindLost:
		if a.mine[rec.ID] {
			a.lost = max(a.lost, rec.Lost)
		}
	}
}

func (a *account) alloc(state *recording.State, rec *recording.Record) {
	l := a.live[rec.ID]
	if l == nil {
		def, _, ok := state.List(rec.ID)
		if !ok || !a.mine[def.Process] {
			return
		}
		l = &list{def: def, chips: a.chips[def.ID], blocks: map[uint64]held{}}
		a.live[rec.ID] = l
	}
	a.told = true
	a.events++
	a.drop(l, rec.Block.Addr)
	h := held{use: a.line(state, l, rec.Block.Site), bytes: rec.Block.Size * max(l.def.Geometry.Banks, 1)}
	l.blocks[rec.Block.Addr] = h
	all := h.bytes * uint64(max(len(l.chips), 1))
	h.use.Held += all
	h.use.Peak = max(h.use.Peak, h.use.Held)
	if !rec.Again { // one that is told again is not allocated again
		h.use.Allocs++
	}
	a.total(l.def.Pool).add(all, a.events)
	for _, chip := range l.chips {
		of(a.perChip, chip, l.def.Pool).add(h.bytes, a.events)
		if index, known := a.places[chip]; known {
			of(a.perDevice, index, l.def.Pool).now += h.bytes
		}
	}
	a.devicePeaks(l)
	for _, pool := range a.stops[a.events] {
		a.mark(pool)
	}
}

// mark notes what each line holds at the peak of a pool.
func (a *account) mark(pool string) {
	for line, use := range a.used {
		if line.Pool == pool {
			use.AtPeak = use.Held
		}
	}
}

func (a *account) total(pool string) *total {
	if a.totals[pool] == nil {
		a.totals[pool] = &total{}
	}
	return a.totals[pool]
}

// devicePeaks takes in what devices hold after a block of a list has been added on
// all its chips.
func (a *account) devicePeaks(l *list) {
	for _, chip := range l.chips {
		if index, known := a.places[chip]; known {
			of(a.perDevice, index, l.def.Pool).add(0, a.events)
		}
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

// line is the account of the line that a site is at.
func (a *account) line(state *recording.State, l *list, id uint32) *runs.LineUse {
	site, _ := state.Site(id)
	line := runs.Line{Pool: l.def.Pool, Tag: site.Tag}
	if f, ok := site.Where(); ok {
		line.File, line.Line, line.Function = f.File, f.Line, f.Function
	}
	if a.used[line] == nil {
		a.used[line] = &runs.LineUse{}
	}
	return a.used[line]
}

// drop takes in that a block is gone. Of a list that is not known there is none.
func (a *account) drop(l *list, addr uint64) {
	if l == nil {
		return
	}
	h, ok := l.blocks[addr]
	if !ok {
		return
	}
	delete(l.blocks, addr)
	all := h.bytes * uint64(max(len(l.chips), 1))
	h.use.Held -= all
	a.total(l.def.Pool).now -= all
	for _, chip := range l.chips {
		of(a.perChip, chip, l.def.Pool).now -= h.bytes
		if index, known := a.places[chip]; known {
			of(a.perDevice, index, l.def.Pool).now -= h.bytes
		}
	}
}

func (a *account) clear(l *list) {
	if l == nil {
		return
	}
	for addr := range l.blocks {
		a.drop(l, addr)
	}
}

func (a *account) lines() *runs.Lines {
	out := &runs.Lines{Used: map[runs.Line]runs.LineUse{}, Peaks: map[string]uint64{}, Lost: a.lost}
	for line, use := range a.used {
		out.Used[line] = *use
	}
	for pool, t := range a.totals {
		out.Peaks[pool] = t.peak
	}
	out.Chips, out.Devices = peaks(a.perChip), peaks(a.perDevice)
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
