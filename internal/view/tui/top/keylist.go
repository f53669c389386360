package top

import "github.com/ttmon/ttmon/internal/view/tui/widget"

// Keys lists what keys do, for documents.
func Keys() []widget.Binding {
	var out []widget.Binding
	for _, list := range [][]binding{onMain(), chartKeys(), everywhere()} {
		for _, b := range list {
			out = append(out, widget.Binding{Keys: b.keys, Foot: b.foot, Help: b.help})
		}
	}
	return out
}
