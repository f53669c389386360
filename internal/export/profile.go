package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/runs"
)

// errNoBlocks is the error of a recording in which no program told its blocks.
var errNoBlocks = errors.New("no blocks are recorded in this file, and a heap profile needs them: record with ttmon record -- COMMAND")

// Profile is a heap profile as `go tool pprof` and others read it: what was
// held at a moment, at the peak of each pool, and all that was allocated up to
// that moment, by stack.
func Profile(r *recording.Reader, at time.Time) ([]byte, error) {
	sums, err := sumUp(r, at)
	if err != nil {
		return nil, err
	}
	if len(sums) == 0 {
		return nil, errNoBlocks
	}
	first, _, _ := r.Span()
	device := runs.Device{Index: model.NoDevice}
	for _, key := range slices.SortedFunc(maps.Keys(sums), func(a, b poolKey) int { return cmp.Or(cmp.Compare(a.chip, b.chip), cmp.Compare(a.pool, b.pool)) }) {
		s, b := sums[key], &runs.Blocks{}
		for _, id := range slices.Sorted(maps.Keys(s.total)) {
			place := runs.Place{Tag: s.sites[id].Tag, Stack: s.sites[id].Stack, Held: s.now[id], Total: s.total[id]}
			b.Places = append(b.Places, place)
			if n, ok := s.atPeak[id]; ok && n.Blocks > 0 {
				place.Amount = n
				b.AtPeak = append(b.AtPeak, place)
			}
		}
		id := strconv.FormatUint(key.chip, 10)
		if n := len(device.Chips); n == 0 || device.Chips[n-1].ID != id {
			device.Chips = append(device.Chips, runs.Chip{ID: id, Pools: map[string]runs.Pool{}})
		}
		device.Chips[len(device.Chips)-1].Pools[key.pool.String()] = runs.Pool{Blocks: b}
	}
	return runreport.Profile(&runs.Run{Start: first, Last: at, Devices: []runs.Device{device}})
}

type poolKey struct {
	chip uint64
	pool model.Pool
}

// poolSum is what the places of a program hold of a pool.
type poolSum struct {
	now, total, atPeak map[uint32]runs.Amount
	sites              map[uint32]recording.Site
	bytes, peak        uint64
	changed            map[uint32]runs.Amount // as they were at the peak, of those that changed since
}

func newPoolSum() *poolSum {
	return &poolSum{now: map[uint32]runs.Amount{}, total: map[uint32]runs.Amount{}, sites: map[uint32]recording.Site{}, changed: map[uint32]runs.Amount{}}
}

// move changes what a place holds. What it held at the peak is noted before.
func (s *poolSum) move(site uint32, bytes uint64, alloc, again bool) {
	if _, ok := s.changed[site]; !ok {
		s.changed[site] = s.now[site]
	}
	x := s.now[site]
	if alloc {
		x.Bytes, x.Blocks = x.Bytes+bytes, x.Blocks+1
		total := s.total[site]
		if !again {
			total.Bytes, total.Blocks = total.Bytes+bytes, total.Blocks+1
		}
		s.total[site] = total
		s.bytes += bytes
	} else {
		x.Bytes, x.Blocks = x.Bytes-bytes, x.Blocks-1
		s.bytes -= bytes
	}
	if s.now[site] = x; s.bytes > s.peak {
		s.peak = s.bytes
		clear(s.changed) // this is the peak: all is as it is
	}
}

// settle makes of what changed since the peak what was held at it.
func (s *poolSum) settle() {
	s.atPeak = maps.Clone(s.now)
	maps.Copy(s.atPeak, s.changed)
}

func sumUp(r *recording.Reader, at time.Time) (map[poolKey]*poolSum, error) {
	chips, err := r.Chips()
	if err != nil {
		return nil, err
	}
	same := alike(chips)
	u := &sumsUp{chips: map[uint32][]uint64{}, sums: map[poolKey]*poolSum{}, live: map[uint32]map[uint64]profiled{}}
	for list, all := range chips {
		for _, chip := range all {
			if first := same[chip]; !slices.Contains(u.chips[list], first) {
				u.chips[list] = append(u.chips[list], first)
			}
		}
	}
	c := r.Begin()
	for {
		rec, err := c.NextUntil(at)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		u.take(c.State, &rec)
	}
	for _, s := range u.sums {
		s.settle()
	}
	out := map[poolKey]*poolSum{}
	for chip, first := range same {
		for _, pool := range model.Pools() {
			if s := u.sums[poolKey{first, pool}]; s != nil {
				out[poolKey{chip, pool}] = s
			}
		}
	}
	return out, nil
}

// alike maps each chip to the first one that is in the same lists: at every
// moment they hold the same, so one of them is summed up.
func alike(chips map[uint32][]uint64) map[uint64]uint64 {
	lists := map[uint64][]uint32{}
	for _, list := range slices.Sorted(maps.Keys(chips)) {
		for _, chip := range chips[list] {
			lists[chip] = append(lists[chip], list)
		}
	}
	first, out := map[string]uint64{}, map[uint64]uint64{}
	for _, chip := range slices.Sorted(maps.Keys(lists)) {
		key := fmt.Sprint(lists[chip])
		if _, ok := first[key]; !ok {
			first[key] = chip
		}
		out[chip] = first[key]
	}
	return out
}

// sumsUp sums up what places hold while a recording is read.
type sumsUp struct {
	chips map[uint32][]uint64 // of each list; of those that are alike, one
	sums  map[poolKey]*poolSum
	live  map[uint32]map[uint64]profiled // by list and address
}

func (u *sumsUp) take(state *recording.State, rec *recording.Record) {
	switch rec.Kind {
	case recording.KindAlloc:
		u.alloc(state, rec)
	case recording.KindFree:
		u.drop(rec.ID, rec.Block.Addr)
	case recording.KindClear, recording.KindClosed:
		u.dropAll(rec.ID)
	case recording.KindEnded:
		for list := range u.live {
			if _, _, open := state.List(list); !open {
				u.dropAll(list)
			}
		}
	}
}

func (u *sumsUp) alloc(state *recording.State, rec *recording.Record) {
	u.drop(rec.ID, rec.Block.Addr)
	def, _, _ := state.List(rec.ID)
	x := profiled{site: rec.Block.Site, bytes: bytesOf(&def, rec.Block)}
	for _, chip := range u.chips[rec.ID] {
		key := poolKey{chip, def.Geometry.Pool}
		if u.sums[key] == nil {
			u.sums[key] = newPoolSum()
		}
		u.sums[key].sites[x.site], _ = state.Site(x.site)
		u.sums[key].move(x.site, x.bytes, true, rec.Again)
		x.keys = append(x.keys, key)
	}
	if u.live[rec.ID] == nil {
		u.live[rec.ID] = map[uint64]profiled{}
	}
	u.live[rec.ID][rec.Block.Addr] = x
}

func (u *sumsUp) drop(list uint32, addr uint64) {
	x, ok := u.live[list][addr]
	if !ok {
		return
	}
	delete(u.live[list], addr)
	for _, key := range x.keys {
		u.sums[key].move(x.site, x.bytes, false, false)
	}
}

func (u *sumsUp) dropAll(list uint32) {
	for _, addr := range slices.Sorted(maps.Keys(u.live[list])) {
		u.drop(list, addr)
	}
}

// profiled is a block that is held.
type profiled struct {
	site  uint32
	bytes uint64
	keys  []poolKey
}
