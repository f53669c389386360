package bankmap

import (
	"strings"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// CallSites return for a block which line of the program asked for
// them, by tag and by the line that tells it from the others, and for which
// tensor. A function is nil where nothing is known.
func CallSites(sites []callsite.Site) (place, tensor func(blocks.Block) string) {
	stacks := make([][]ledgerfile.Frame, len(sites))
	for i := range sites {
		stacks[i] = sites[i].Stack
	}
	names, tensors := map[uint32]string{}, map[uint32]string{}
	for i, line := range callsite.Lines(stacks) {
		s := &sites[i]
		if name := CallSite(s.Tag, line); name != "" {
			names[uint32(s.Number)] = name
		}
		if s.Tensor != "" {
			tensors[uint32(s.Number)] = words.Escape(s.Tensor)
		}
	}
	return bySite(names), bySite(tensors)
}

// CallSite names a line of a program and its tag, as far as they are known:
// "weights model.py:88 load".
func CallSite(tag string, line ledgerfile.Frame) string {
	name := words.Escape(tag)
	if line != (ledgerfile.Frame{}) {
		name += " " + words.Escape(callsite.Name(line)) + " " + words.Escape(line.Function)
	}
	return strings.TrimSpace(name)
}

// bySite looks the site of a block up; nil: nothing is known of any.
func bySite(known map[uint32]string) func(blocks.Block) string {
	if len(known) == 0 {
		return nil
	}
	return func(b blocks.Block) string { return known[b.Site] }
}
