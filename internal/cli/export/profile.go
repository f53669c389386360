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

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/past/runs/lines"
)

// errNoBlocks is the error of a recording in which no program told its blocks.
var errNoBlocks = errors.New("no blocks are recorded in this file, and a heap profile needs them: record with ttmon record -- COMMAND")

// Profile is a heap profile as `go tool pprof` and others read it: what was
// held at a moment, at the peak of each pool, and all that was allocated up to
// that moment, by stack.
func Profile(r *recording.Reader, at time.Time) ([]byte, error) {
	sums, sites, err := sumUp(r, at)
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
		atPeak := s.AtPeak()
		for _, id := range slices.Sorted(maps.Keys(s.Total)) {
			place := runs.Place{Tag: sites[id].Tag, Stack: sites[id].Stack, Held: s.Now[id], Total: s.Total[id]}
			b.Places = append(b.Places, place)
			if n := atPeak[id]; n.Blocks > 0 {
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

// sumUp sums up what places of programs held of each pool, by the number of the place.
func sumUp(r *recording.Reader, at time.Time) (out map[poolKey]*lines.Sums[uint32], sites map[uint32]recording.Site, err error) {
	all, err := r.Chips()
	if err != nil {
		return nil, nil, err
	}
	same := alike(all)
	chips := map[uint32][]uint64{} // of each list; of those that are alike, one
	for list, ids := range all {
		for _, chip := range ids {
			if first := same[chip]; !slices.Contains(chips[list], first) {
				chips[list] = append(chips[list], first)
			}
		}
	}
	out, sites = map[poolKey]*lines.Sums[uint32]{}, map[uint32]recording.Site{}
	c := r.Begin()
	for {
		rec, err := c.NextUntil(at)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range rec.Moves {
			m := &rec.Moves[i]
			sites[m.Block.Site], _ = c.Site(m.Block.Site)
			for _, chip := range chips[m.List.ID] {
				key := poolKey{chip, m.List.Geometry.Pool}
				if out[key] == nil {
					out[key] = lines.NewSums[uint32]()
				}
				out[key].Move(m.Block.Site, m.BytesOfChip(), m.Gone, rec.Again)
			}
		}
	}
	for chip, first := range same {
		for _, pool := range model.Pools() {
			if s := out[poolKey{first, pool}]; s != nil {
				out[poolKey{chip, pool}] = s
			}
		}
	}
	return out, sites, nil
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
