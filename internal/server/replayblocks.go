package server

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/callsite"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/runs"
)

// heldBy is what a process holds, and where in the program it asked for it.
func heldBy(s *recording.State, pid int) (api.BlocksOf, bool) {
	for _, p := range s.Processes() {
		if p.PID != pid {
			continue
		}
		places, sites := placesOf(s, p.ID), sitesOf(s, p.ID)
		return api.BlocksOf{
			Process: s.Blocks(p.ID), UID: os.Geteuid(),
			Places: func() []runs.Chip { return places },
			Sites:  func() []callsite.Site { return sites },
		}, true
	}
	return api.BlocksOf{}, false
}

// sitesOf are the call sites of what a process holds.
func sitesOf(s *recording.State, process uint32) []callsite.Site {
	found := map[uint32]bool{}
	for _, id := range s.Lists() {
		def, live, _ := s.List(id)
		if def.Process != process {
			continue
		}
		for b := range live.All() {
			found[b.Site] = true
		}
	}
	out := []callsite.Site{}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		if site, ok := s.Site(number); ok {
			out = append(out, callsite.Site{Number: int(number), Tag: site.Tag, Stack: site.Stack})
		}
	}
	return out
}

// placeOnChip is a place of a program, and where what it asked for is.
type placeOnChip struct {
	chip uint64
	pool string
	site uint32
}

// placesOf sums up what the places of a program hold, chip by chip.
func placesOf(s *recording.State, process uint32) (out []runs.Chip) {
	sums := map[placeOnChip]*runs.Place{}
	for _, id := range s.Lists() {
		def, live, _ := s.List(id)
		if def.Process != process {
			continue
		}
		for b := range live.All() {
			site, ok := s.Site(b.Site)
			if !ok {
				continue
			}
			for _, chip := range def.Chips {
				k := placeOnChip{chip, def.Pool, b.Site}
				x := sums[k]
				if x == nil {
					x = &runs.Place{Tag: site.Tag, Stack: site.Stack}
					sums[k] = x
				}
				x.Held.Bytes += b.Size * def.Geometry.Banks
				x.Held.Blocks++
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(sums), func(a, b placeOnChip) int {
		return cmp.Or(cmp.Compare(a.chip, b.chip), cmp.Compare(a.pool, b.pool), cmp.Compare(a.site, b.site))
	})
	for _, k := range order {
		b := &runs.Blocks{Places: []runs.Place{*sums[k]}}
		out = append(out, runs.Chip{ID: strconv.FormatUint(k.chip, 10), Pools: map[string]runs.Pool{k.pool: {Blocks: b}}})
	}
	return out
}
