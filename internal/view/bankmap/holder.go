package bankmap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Line is a line of text, of which parts have the colour of who holds something.
type Line struct {
	Text  string
	Marks []Mark
}

// Mark is a part of a line, in cells, and the number of a holder.
type Mark struct{ From, To, Holder int }

// plain are lines without colours.
func plain(list ...string) (out []Line) {
	for _, s := range list {
		out = append(out, Line{Text: s})
	}
	return out
}

// texts are the lines without their colours.
func texts(list []Line) (out []string) {
	for _, l := range list {
		out = append(out, l.Text)
	}
	return out
}

// Colored is the line for a terminal with colours.
func (l *Line) Colored() string {
	if len(l.Marks) == 0 {
		return l.Text
	}
	var b strings.Builder
	runes := []rune(l.Text)
	at := 0
	for _, m := range l.Marks {
		b.WriteString(string(runes[at:m.From]) + words.Hue(m.Holder) + string(runes[m.From:m.To]) + words.Hue(0))
		at = m.To
	}
	b.WriteString(string(runes[at:]))
	return b.String()
}

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
	growth := map[*Holder]*runreport.Growth{}
	for b := range l.All() {
		h := by[place(b)]
		g := growth[h]
		if g == nil {
			g = &runreport.Growth{First: h.Oldest, End: youngest}
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
func mapLine(l *blocks.List, by map[string]*Holder, o Options) Line {
	end := " " + words.Bytes(l.Capacity)
	width := o.Width - 2 - len(end)
	line := Line{Text: "0 " + Row(l, width, o.ASCII) + end}
	if len(by) == 0 || width < 1 {
		return line
	}
	owner, most := make([]int, width), make([]float64, width)
	cell := float64(l.Capacity) / float64(width)
	for b := range l.All() {
		from, to := float64(b.Addr-l.Base)/cell, float64(min(b.End(), l.Base+l.Capacity)-l.Base)/cell
		for i := int(from); i < width && float64(i) < to; i++ {
			if part := min(to, float64(i+1)) - max(from, float64(i)); part > most[i] {
				most[i], owner[i] = part, by[o.Place(b)].Number
			}
		}
	}
	for i := 0; i < width; {
		end := i + 1
		for end < width && owner[end] == owner[i] {
			end++
		}
		if owner[i] > 0 {
			line.Marks = append(line.Marks, Mark{2 + i, 2 + end, owner[i]})
		}
		i = end
	}
	return line
}

// legend says whose the colours of the map are.
func legend(list []*Holder, o Options) (out []Line) {
	if len(list) == 0 || len(list) == 1 && list[0].Name == "" {
		return nil
	}
	mark := "█"
	if o.ASCII {
		mark = "#"
	}
	shown := list[:min(len(list), o.Top)]
	width := 0
	for _, h := range shown {
		width = max(width, words.Width(nameOr(h.Name)))
	}
	width = min(width, max(o.Width-46, 16))
	for _, h := range shown {
		text := fmt.Sprintf("  %s %s %9s  %s", mark, words.Fit(nameOr(h.Name), width), words.Bytes(h.Bytes), words.Count(h.Blocks, "block"))
		if h.Oldest > 0 {
			text += ", " + words.Duration(o.Now.Sub(time.Unix(0, h.Oldest)))
		}
		out = append(out, Line{Text: text, Marks: []Mark{{2, 3, h.Number}}})
	}
	if more := list[len(shown):]; len(more) > 0 {
		sum := uint64(0)
		for _, h := range more {
			sum += h.Bytes
		}
		out = append(out, Line{Text: fmt.Sprintf("  %s and %d more lines with %s", mark, len(more), words.Bytes(sum)), Marks: []Mark{{2, 3, len(shown) + 1}}})
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
func holes(l *blocks.List, o Options) (out []Line) {
	all := slices.Collect(l.Holes())
	if len(all) < 2 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b blocks.Range) int { return cmp.Compare(b.Size, a.Size) })
	shown := all[:min(len(all), maxHoles)]
	out = plain(fmt.Sprintf("  %-14s %9s  %s", "hole at", "a bank", "between"))
	for _, h := range shown {
		out = append(out, Line{Text: fmt.Sprintf("  %#-14x %9s  %s", h.Addr, words.Bytes(h.Size), words.Truncate(beside(l, h, o), max(o.Width-28, 8)))})
	}
	if more := all[len(shown):]; len(more) > 0 {
		sum := uint64(0)
		for _, h := range more {
			sum += h.Size
		}
		out = append(out, plain(fmt.Sprintf("  and %d more holes, %s together", len(more), words.Bytes(sum)))...)
	}
	return out
}

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
