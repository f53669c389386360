package bankmap

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Holder is a line of the program and what it holds of each bank.
type Holder struct {
	Name   string // empty: not known
	Bytes  uint64
	Blocks int
	Oldest int64 // Unix time in ns; 0: not known
	Number int   // from 1, the largest first: its colour
	// Steady says that the blocks it holds came in each quarter of the time since the
	// oldest. It grew step by step, if the program frees at all.
	Steady bool
}

// Holders are those who hold blocks of a list, the largest first, and who has
// which place. There are none where places are not known.
func Holders(l *blocks.List, place func(blocks.Block) string) (list []*Holder, by map[string]*Holder) {
	by = map[string]*Holder{}
	if place == nil {
		return nil, by
	}
	youngest := int64(0)
	for b := range l.All() {
		name := place(b)
		h := by[name]
		if h == nil {
			h = &Holder{Name: name}
			by[name] = h
			list = append(list, h)
		}
		h.Bytes += b.Size
		h.Blocks++
		if b.Born > 0 && (h.Oldest == 0 || b.Born < h.Oldest) {
			h.Oldest = b.Born
		}
		youngest = max(youngest, b.Born)
	}
	slices.SortStableFunc(list, func(a, b *Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i, h := range list {
		h.Number = i + 1
	}
	markSteady(l, by, place, youngest)
	return list, by
}

// markSteady says which holders' blocks came step by step, up to the youngest block.
func markSteady(l *blocks.List, by map[string]*Holder, place func(blocks.Block) string, youngest int64) {
	growth := map[*Holder]*blocks.Growth{}
	for b := range l.All() {
		h := by[place(b)]
		g := growth[h]
		if g == nil {
			g = &blocks.Growth{First: h.Oldest, End: youngest}
			growth[h] = g
		}
		if b.Born > 0 {
			g.Add(b.Born)
		}
	}
	for h, g := range growth {
		h.Steady = g.Steady()
	}
}

// mapLine draws a bank with each cell in the colour of who has most of it.
func mapLine(l *blocks.List, by map[string]*Holder, o Options) lines.Line {
	color := func(b blocks.Block) int {
		if len(by) == 0 {
			return 0
		}
		return by[o.Place(b)].Number
	}
	return sheet.MapOf(l, color, o.Now, 0).Line(o.Width)
}

// legend says whose the colours of the map are.
func legend(list []*Holder, o Options) []lines.Line {
	if len(list) == 0 || len(list) == 1 && list[0].Name == "" {
		return nil
	}
	shown := list[:min(len(list), o.Top)]
	t := &lines.Table{Indent: 2, Columns: []lines.Column{{}, {Tight: true, Least: 16, Most: max(o.Width-46, 16)}, {Right: true, Tight: true, Least: 9}, {Rest: true}}}
	for _, h := range shown {
		text := words.Count(h.Blocks, "block")
		if h.Oldest > 0 {
			text += ", " + words.Duration(o.Now.Sub(time.Unix(0, h.Oldest)))
		}
		t.Rows = append(t.Rows, lines.Row{Cells: []lines.Cell{lines.C("█", sheet.Color(h.Number)), lines.C(nameOr(h.Name)), lines.C(words.Bytes(h.Bytes)), lines.C(text)}})
	}
	out := t.All(o.Width)
	if more := list[len(shown):]; len(more) > 0 {
		sum := uint64(0)
		for _, h := range more {
			sum += h.Bytes
		}
		out = append(out, lines.Line{lines.S("  ", cells.Text), lines.S("█", sheet.Color(len(shown)+1)), lines.S(fmt.Sprintf(" and %d more lines with %s", len(more), words.Bytes(sum)), cells.Text)})
	}
	return out
}

func nameOr(name string) string {
	if name == "" {
		return words.NoLine
	}
	return name
}

// maxHoles is how many holes are listed.
const maxHoles = 5

// holes lists the largest holes, and between whose blocks they lie. A single hole that
// the heading already names is not listed.
func holes(l *blocks.List, o Options) []lines.Line {
	all := slices.Collect(l.Holes())
	if len(all) < 2 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b blocks.Range) int { return cmp.Compare(b.Size, a.Size) })
	shown := all[:min(len(all), maxHoles)]
	t := &lines.Table{Indent: 2, Columns: []lines.Column{{Head: "hole at", Least: 14}, {Head: "a bank", Least: 9, Right: true, Tight: true}, {Head: "between", Rest: true}}}
	for _, h := range shown {
		t.Add(address(h.Addr), words.Bytes(h.Size), beside(l, h, o))
	}
	out := t.All(o.Width)
	if more := all[len(shown):]; len(more) > 0 {
		sum := uint64(0)
		for _, h := range more {
			sum += h.Size
		}
		out = append(out, lines.Plain(fmt.Sprintf("  and %d more holes, %s together", len(more), words.Bytes(sum))))
	}
	return out
}

func address(a uint64) string { return fmt.Sprintf("%#x", a) }

// beside names what lies on both sides of a hole.
func beside(l *blocks.List, h blocks.Range, o Options) string {
	before, after := "the start", "the end"
	if l.Cut > 0 {
		before = "what is set aside"
	}
	name := func(b blocks.Block) string {
		if o.Place != nil {
			if s := o.Place(b); s != "" {
				return s
			}
		}
		return fmt.Sprintf("the block at %#x", b.Addr)
	}
	for b := range l.All() {
		if b.End() <= h.Addr {
			before = name(b)
		}
		if b.Addr >= h.Addr+h.Size {
			after = name(b)
			break
		}
	}
	return before + " and " + after
}
