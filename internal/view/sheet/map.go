package sheet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/words"
)

// Map is a bank along its addresses.
type Map struct {
	Base  uint64 `json:"base"`
	Size  uint64 `json:"size"`
	Cut   uint64 `json:"cut"`   // bytes at its low end that are set aside
	Exact bool   `json:"exact"` // what is not a span is free; else it is not known
	// Spans are address, bytes, number of the colour (0: whose it is is not known) and
	// milliseconds for which it had been there (0: not known).
	Spans   [][4]uint64 `json:"spans"`
	LeftOut int         `json:"left_out"` // smaller ones that are not in the list
	Names   []string    `json:"names"`    // of the colours, from 1
	Piece   *Piece      `json:"piece"`    // null: nothing was asked for
	End     string      `json:"end"`      // its size, as it is written at its end
}

// Piece is what found no room, drawn below the map to the same scale.
type Piece struct {
	At    uint64 `json:"at"`
	Size  uint64 `json:"size"`
	Label string `json:"label"`
}

// MaxSpans bounds the spans of a picture: more than a screen has points.
const MaxSpans = 5000

// MapOf is the map of a bank; nil: its size is not known. Color says whose a block
// is; ages are before a time. At most the largest spans are in it; most 0: all.
func MapOf(l *blocks.List, color func(blocks.Block) int, at time.Time, most int) *Map {
	if l == nil || l.Capacity == 0 {
		return nil
	}
	m := &Map{Base: l.Base, Size: l.Capacity, Cut: l.Cut, Exact: l.Exact(), Spans: [][4]uint64{}, End: words.Bytes(l.Capacity), Names: []string{}}
	all := slices.Collect(l.All())
	if most > 0 && len(all) > most {
		slices.SortStableFunc(all, func(a, b blocks.Block) int { return cmp.Compare(b.Size, a.Size) })
		m.LeftOut = len(all) - most
		all = all[:most]
		slices.SortFunc(all, func(a, b blocks.Block) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	for _, b := range all {
		age := uint64(0)
		if b.Born > 0 {
			age = uint64(max(at.Sub(time.Unix(0, b.Born)).Milliseconds(), 1))
		}
		m.Spans = append(m.Spans, [4]uint64{b.Addr, b.Size, uint64(color(b)), age})
	}
	return m
}

// Cell is a piece of a map that is one character wide.
type Cell struct {
	Used  float64 // part of it
	Color int     // of the span that covers most of it; 0: none
}

// Cells divides the map into n equal cells.
func (m *Map) Cells(n int) []Cell {
	list, most := make([]Cell, n), make([]float64, n)
	size := float64(m.Size) / float64(n)
	fill := func(from, to uint64, color int) {
		a, b := float64(max(from, m.Base)-m.Base)/size, float64(to-m.Base)/size
		for i := max(int(a), 0); i < n && float64(i) < b; i++ {
			part := min(b, float64(i+1)) - max(a, float64(i))
			list[i].Used += part
			if part > most[i] {
				most[i], list[i].Color = part, color
			}
		}
	}
	if m.Cut > 0 {
		fill(m.Base, m.Base+m.Cut, 0)
	}
	for _, s := range m.Spans {
		if s[0] >= m.Base {
			fill(s[0], min(s[0]+s[1], m.Base+m.Size), int(s[2]))
		}
	}
	return list
}

// full is how much of a cell is taken before it is drawn as taken whole.
const full = 0.995

// label is what a span says of itself.
func (m *Map) label(s [4]uint64) string {
	name := words.NoLine
	if n := int(s[2]); n > 0 && n <= len(m.Names) {
		name = m.Names[n-1]
	}
	text := name + ": " + words.Bytes(s[1]) + fmt.Sprintf(" at %#x", s[0])
	if s[3] > 0 {
		text += ", allocated " + words.Duration(time.Duration(s[3])*time.Millisecond) + " before"
	}
	return strings.TrimSpace(text)
}
