package server

import (
	"maps"
	"os"
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// heldBy is what a process holds, and where in the program it asked for it.
func heldBy(s *recording.State, pid int) (api.BlocksOf, bool) {
	for _, p := range s.Processes() {
		if p.PID != pid {
			continue
		}
		sites, pools := sitesOf(s, p.ID), poolsOf(s, p.ID)
		return api.BlocksOf{
			Process: s.Blocks(p.ID), UID: os.Geteuid(),
			Sites: func() []callsite.Site { return sites },
			Frees: func() []blocks.ChipPool { return pools },
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

// poolsOf are the pools of the chips that a process uses. Whether it frees blocks there
// is not known at one moment, so that what grew is said of all.
func poolsOf(s *recording.State, process uint32) []blocks.ChipPool {
	out := []blocks.ChipPool{}
	for _, id := range s.Lists() {
		def, _, _ := s.List(id)
		if def.Process != process {
			continue
		}
		for _, chip := range def.Chips {
			out = append(out, blocks.ChipPool{Chip: chip, Pool: def.Pool})
		}
	}
	return out
}
