package top

import (
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Keys lists what keys do, for documents.
func Keys() []widget.Binding { return listed(onMain(), chartKeys(), everywhere()) }

// MemoryKeys lists what they do on the page of memory, with a chip open: no other part of
// it has more.
func MemoryKeys() []widget.Binding {
	return listed(memoryPage{mem.OfOneChip()}.keys(), everywhere())
}

func listed(lists ...[]binding) (out []widget.Binding) {
	for _, list := range lists {
		for _, b := range list {
			out = append(out, widget.Binding{Keys: b.keys, Foot: b.foot, Help: b.help})
		}
	}
	return out
}
