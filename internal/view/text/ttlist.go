package text

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendTTList appends the listing of tt-smi -ls: all chips, then those that
// can be reset. The number that UMD gives a chip cannot be known from outside.
func AppendTTList(dst []byte, s *model.Snapshot, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	heads := []string{"UMD Chip ID", "PCI BDF", "PCI Dev ID", "Board Type", "Device Series", "Board Number"}
	var all, local [][]string
	for _, c := range ttChips(s) {
		bus, path := c.BusID, c.Path
		if c.remote {
			bus, path = na, na
		}
		row := []string{na, bus, path, series(c.Arch), words.Escape(c.boardType()), words.Escape(c.boardID())}
		all = append(all, row)
		if !c.remote {
			local = append(local, row)
		}
	}
	if s.Simulated {
		p.line(words.Simulated, warn)
	}
	p.boxed("All available boards on host (UMD):", heads, all)
	p.boxed("Boards that can be reset (UMD):", heads, local)
	return p.buf
}

func series(a model.Arch) string {
	switch a {
	case model.Wormhole:
		return "Wormhole"
	case model.Blackhole:
		return "Blackhole"
	default:
		return na
	}
}

// boxed draws a table in a box with a heavy head, as the official tool does.
func (p *printer) boxed(title string, heads []string, rows [][]string) {
	widths := make([]int, len(heads))
	total := 1
	for i, h := range heads {
		widths[i] = words.Width(h)
		for _, r := range rows {
			widths[i] = max(widths[i], words.Width(r[i]))
		}
		total += widths[i] + 3
	}
	edge := func(left, fill, mid, right string) {
		parts := make([]string, len(widths))
		for i, w := range widths {
			parts[i] = strings.Repeat(fill, w+2)
		}
		p.line(left+strings.Join(parts, mid)+right, plain)
	}
	line := func(bar string, cells []string) {
		var b strings.Builder
		for i, cl := range cells {
			b.WriteString(bar + " " + words.Pad(cl, widths[i]) + " ")
		}
		p.line(b.String()+bar, plain)
	}
	p.line(strings.Repeat(" ", max(0, (total-words.Width(title))/2))+title, plain)
	edge("┏", "━", "┳", "┓")
	line("┃", heads)
	edge("┡", "━", "╇", "┩")
	for _, r := range rows {
		line("│", r)
	}
	edge("└", "─", "┴", "┘")
}
