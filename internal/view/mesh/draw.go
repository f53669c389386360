// Package mesh draws how the chips of a host are joined over Ethernet, for
// terminals: the trays of a Galaxy, or a line for each chip, and what is wrong.
package mesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Draw draws the mesh in a width: the trays of a Galaxy side by side, other boards
// a line each; then what is wrong. A mesh without edges has no drawing.
func Draw(of *mesh.Mesh, width int) []lines.Line {
	m := drawing{of}
	if len(m.Edges) == 0 {
		return nil
	}
	list := []lines.Line{m.title(width)}
	if trays := m.trays(); len(trays) > 0 {
		list = append(list, m.drawTrays(trays, width)...)
	} else {
		list = append(list, m.drawBoards()...)
	}
	return append(list, troubles(of)...)
}

// drawing is a mesh that is being drawn.
type drawing struct{ *mesh.Mesh }

// title says how many links are up, and names those that are not, as far as there
// is room for them.
func (m drawing) title(width int) lines.Line {
	expected, up := m.Links()
	tone := cells.Good
	if up < expected {
		tone = cells.Bad
	}
	head := fmt.Sprintf(" Ethernet: %d of %d links up", up, expected)
	note := ""
	switch n := m.Unread(); {
	case n > 0:
		note = fmt.Sprintf("; %d between chips that are not read", n)
	case m.remote() > 1:
		note = "; those between remote chips are not read"
	}
	if bad := Broken(m.Mesh); len(bad) > 0 {
		head += ": " + names(bad, width-words.Width(head)-2)
	}
	l := lines.Line{lines.S(head, tone)}
	if note != "" && words.Width(head+note) <= width {
		l = append(l, lines.S(note, cells.Faint))
	}
	return l
}

// Broken lists the edges with links that are down, the worst first.
func Broken(m *mesh.Mesh) (list []*mesh.Edge) {
	level := func(e *mesh.Edge) model.Level { return assess.LevelOf(assess.LinkKind(e)) }
	for i := range m.Edges {
		if e := &m.Edges[i]; level(e) > model.Fine {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *mesh.Edge) int { return cmp.Compare(level(b), level(a)) })
	return list
}

// names names as many broken edges as a width has room for, and counts the rest.
func names(list []*mesh.Edge, width int) string {
	text := ""
	for i, e := range list {
		word := " weak"
		if assess.LinkKind(e) == model.ConditionLinkDown {
			word = " down"
		}
		next := text + words.Edge(e) + word
		more := ""
		if left := len(list) - i - 1; left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		if i > 0 && words.Width(next+more) > width {
			return strings.TrimSuffix(text, ", ") + fmt.Sprintf(" and %d more", len(list)-i)
		}
		text = next + ", "
	}
	return strings.TrimSuffix(text, ", ")
}

// remote counts the chips behind Ethernet on the devices whose own chips are read.
func (m drawing) remote() (n int) {
	for _, c := range m.Chips {
		if !c.PortsKnown && slices.ContainsFunc(m.Chips, func(o mesh.Chip) bool { return o.Device == c.Device && o.PortsKnown }) {
			n++
		}
	}
	return n
}

// trays are the numbers of the trays that there are.
func (m drawing) trays() (list []int) {
	for _, c := range m.Chips {
		if c.Tray > 0 && !slices.Contains(list, c.Tray) {
			list = append(list, c.Tray)
		}
	}
	slices.Sort(list)
	return list
}

const (
	perRow    = 4  // chips of a tray in a row
	trayWidth = 20 // columns, with the gap in front
)

func (m drawing) drawTrays(trays []int, width int) (list []lines.Line) {
	across := min(max(width/trayWidth, 1), len(trays))
	for len(trays) > 0 {
		group := trays[:min(across, len(trays))]
		trays = trays[len(group):]
		rows := make([]lines.Line, 4)
		for _, t := range group {
			rows[0] = append(rows[0], lines.S(words.Pad(fmt.Sprintf(" tray %d", t), trayWidth), cells.Faint))
			rows[1] = append(rows[1], m.trayRow(t, 1)...)
			rows[2] = append(rows[2], m.betweenRows(t)...)
			rows[3] = append(rows[3], m.trayRow(t, 1+perRow)...)
		}
		list = append(list, rows...)
	}
	return append(list, m.betweenTrays()...)
}

// at is the chip at a place of a tray.
func (m drawing) at(tray, slot int) (mesh.Chip, bool) {
	i := slices.IndexFunc(m.Chips, func(c mesh.Chip) bool { return c.Tray == tray && c.Slot == slot })
	if i < 0 {
		return mesh.Chip{}, false
	}
	return m.Chips[i], true
}

func (m drawing) trayRow(tray, first int) (l lines.Line) {
	l = append(l, lines.S(" ", cells.Text))
	for slot := first; slot < first+perRow; slot++ {
		c, ok := m.at(tray, slot)
		l = append(l, node(c, ok))
		if slot == first+perRow-1 {
			break
		}
		next, there := m.at(tray, slot+1)
		l = append(l, m.mark(c, next, ok && there, "═", "─"))
	}
	return l
}

// node is a chip of a drawing, four columns wide.
func node(c mesh.Chip, ok bool) lines.Span {
	if !ok {
		return lines.S(" -- ", cells.Faint)
	}
	tone := cells.Text
	if c.State != model.StateOK {
		tone = cells.Bad
	}
	return lines.S(fmt.Sprintf("[%2d]", c.Device), tone)
}

func (m drawing) betweenRows(tray int) (l lines.Line) {
	l = append(l, lines.S(" ", cells.Text))
	for slot := 1; slot <= perRow; slot++ {
		upper, ok1 := m.at(tray, slot)
		lower, ok2 := m.at(tray, slot+perRow)
		gap := "   "
		if slot == perRow {
			gap = "  "
		}
		l = append(l, lines.S(" ", cells.Text), m.mark(upper, lower, ok1 && ok2, "║", "│"), lines.S(gap, cells.Text))
	}
	return l
}

// mark is one column for what is between two chips: all links up, some, none.
func (m drawing) mark(a, b mesh.Chip, there bool, all, some string) lines.Span {
	if !there {
		return lines.S(" ", cells.Text)
	}
	e := m.Edge(a.ChipPlace, b.ChipPlace)
	if e == nil {
		return lines.S(" ", cells.Text)
	}
	return markOf(e, all, some)
}

func markOf(e *mesh.Edge, all, some string) lines.Span {
	_, unknown := e.Up()
	switch k := assess.LinkKind(e); {
	case unknown == len(e.Channels):
		return lines.S("·", cells.Faint)
	case assess.LevelOf(k) == model.Fine:
		return lines.S(all, cells.Good)
	case assess.LevelOf(k) == model.Warning:
		return lines.S(some, cells.Warn)
	default:
		return lines.S("✗", cells.Bad)
	}
}

// betweenTrays counts the links that lead from one tray to another.
func (m drawing) betweenTrays() (list []lines.Line) {
	type pair [2]int
	total, up := map[pair]int{}, map[pair]int{}
	tray := map[int]int{}
	for _, c := range m.Chips {
		tray[c.Device] = c.Tray
	}
	for i := range m.Edges {
		e := &m.Edges[i]
		p := pair{tray[e.A.Device], tray[e.B.Device]}
		if e.Outside || e.Unread || p[0] == p[1] {
			continue
		}
		if p[0] > p[1] {
			p[0], p[1] = p[1], p[0]
		}
		n, _ := e.Up()
		total[p], up[p] = total[p]+len(e.Channels), up[p]+n
	}
	var l lines.Line
	for a := range len(tray) + 1 {
		for b := a + 1; b <= len(tray); b++ {
			p := pair{a, b}
			if total[p] == 0 {
				continue
			}
			tone := cells.Good
			if up[p] < total[p] {
				tone = cells.Bad
			}
			l = append(l, lines.S(fmt.Sprintf(" trays %d-%d: %d/%d ", a, b, up[p], total[p]), tone))
		}
	}
	if len(l) == 0 {
		return nil
	}
	return []lines.Line{l}
}

// drawBoards draws a line for each chip that has links: what it is joined to.
func (m drawing) drawBoards() (list []lines.Line) {
	for _, c := range m.Chips {
		l := lines.Line{lines.S(words.Pad(" ["+words.Place(c.ChipPlace)+"]", 7), cells.Text)}
		for i := range m.Edges {
			e := &m.Edges[i]
			other := e.B
			switch {
			case e.A == c.ChipPlace:
			case e.B == c.ChipPlace && !e.Outside:
				other = e.A
			default:
				continue
			}
			up, _ := e.Up()
			name := "[" + words.Place(other) + "]"
			if e.Outside {
				name = "another host"
			}
			mark := markOf(e, "═", "─")
			count := fmt.Sprintf(" %d/%d ", up, len(e.Channels))
			if e.Unread {
				count = fmt.Sprintf(" ?/%d ", len(e.Channels))
			}
			l = append(l, lines.S(" ", cells.Text), mark, lines.S(name, cells.Text), lines.S(count, mark.Style))
		}
		if len(l) > 1 {
			list = append(list, l)
		}
	}
	return list
}

// troubles says which links are down, and what that cuts off, worst first.
func troubles(m *mesh.Mesh) (list []lines.Line) {
	if lost := words.CutOff(m, m.CutOff()); lost != "" {
		list = append(list, lines.Line{lines.S(" ✗ "+lost, cells.Bad)})
	}
	for _, e := range Broken(m) {
		list = append(list, lines.Line{lines.S(" ✗ "+words.Edge(e)+": "+words.EdgeDown(e), markOf(e, "", "").Style)})
	}
	return append(list, retrained(m)...)
}

// mostRetrained is how many links a drawing names that have trained again: those
// with the most retrains.
const mostRetrained = 3

// retrained names the links that have trained again since the chips' reset.
func retrained(m *mesh.Mesh) (list []lines.Line) {
	var edges []*mesh.Edge
	count := func(e *mesh.Edge) uint32 { return e.Counts().Retrains.V }
	for i := range m.Edges {
		if e := &m.Edges[i]; count(e) > 0 {
			edges = append(edges, e)
		}
	}
	slices.SortStableFunc(edges, func(a, b *mesh.Edge) int { return cmp.Compare(count(b), count(a)) })
	for _, e := range edges[:min(len(edges), mostRetrained)] {
		c := e.Counts()
		list = append(list, lines.Line{lines.S(" ! "+words.Edge(e)+": "+words.LinkTrouble(&c), cells.Warn)})
	}
	if more := len(edges) - mostRetrained; more > 0 {
		list = append(list, lines.Line{lines.S(fmt.Sprintf(" ! and %d more links that have trained again: ttmon topo --links", more), cells.Warn)})
	}
	return list
}
