package text

import (
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendTTList appends the listing of tt-smi -ls: all chips, then those that
// can be reset. The number that UMD gives a chip cannot be known from outside.
func AppendTTList(dst []byte, s *model.Snapshot, o Options) []byte {
	p := newPrinter(dst, o)
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
		p.Line(words.Simulated, cells.Warn)
	}
	p.boxed("All available boards on host (UMD):", heads, all)
	p.boxed("Boards that can be reset (UMD):", heads, local)
	return p.Buf
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
		p.Line(left+strings.Join(parts, mid)+right, cells.Text)
	}
	line := func(bar string, texts []string) {
		var b strings.Builder
		for i, cl := range texts {
			b.WriteString(bar + " " + words.Pad(cl, widths[i]) + " ")
		}
		p.Line(b.String()+bar, cells.Text)
	}
	p.Line(strings.Repeat(" ", max(0, (total-words.Width(title))/2))+title, cells.Text)
	edge("┏", "━", "┳", "┓")
	line("┃", heads)
	edge("┡", "━", "╇", "┩")
	for _, r := range rows {
		line("│", r)
	}
	edge("└", "─", "┴", "┘")
}

// AppendTTTrays appends which device is in which tray, as tt-smi
// -glx_list_tray_to_device prints it.
func AppendTTTrays(dst []byte, s *model.Snapshot, o Options) []byte {
	p := newPrinter(dst, o)
	byTray := map[int][]string{}
	bus := map[int]string{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Tray == 0 {
			continue
		}
		byTray[d.Tray] = append(byTray[d.Tray], number(d.Index))
		if parts := strings.Split(d.BusID, ":"); len(parts) == 3 && len(parts[1]) == 2 {
			bus[d.Tray] = "0x" + parts[1][:1] + "0"
		}
	}
	if len(byTray) == 0 {
		p.Line("no device of this host is in a tray of a Galaxy", cells.Text)
		return p.Buf
	}
	var rows [][]string
	for _, tray := range slices.Sorted(maps.Keys(byTray)) {
		rows = append(rows, []string{number(tray), bus[tray], strings.Join(byTray[tray], ",")})
	}
	p.boxed("Mapping of trays to devices on the galaxy:", []string{"Tray Number", "Tray Bus ID", "/dev/tenstorrent/<id>"}, rows)
	return p.Buf
}
