package runtext

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
)

// node is a frame of a flame graph: what it and all it called held.
type node struct {
	name     string
	title    string
	bytes    uint64
	line     int // number of the line that it and all it called belong to, from 1; 0: of several
	children []*node
	legend   []legendLine // of a root: the lines, by number
}

// legendLine is a line of the program that tells what it holds from the rest.
type legendLine struct {
	name  string
	bytes uint64
}

func (n *node) child(name, title string, line int) *node {
	for _, c := range n.children {
		if c.name == name && c.line == line {
			return c
		}
	}
	c := &node{name: name, title: title, line: line}
	n.children = append(n.children, c)
	return c
}

// flames makes a tree per pool of each group of chips: what was held at the peak,
// from the outermost frame inwards. Frames of libraries are folded away.
func flames(r *runs.Run) []*node {
	var roots []*node
	for _, g := range alike(r) {
		for _, x := range g.pools {
			if len(x.Blocks.AtPeak) == 0 {
				continue
			}
			name := words.PoolName(x.pool) + " on " + g.label
			root := &node{name: name, title: name + ": peak " + words.Bytes(x.Peak)}
			root.addPlaces(x.Blocks.AtPeak)
			roots = append(roots, root)
		}
	}
	for _, root := range roots {
		root.sort()
	}
	return roots
}

// addPlaces adds what places held, each below the line that tells it from others.
func (n *node) addPlaces(places []runs.Place) {
	stacks := make([][]runs.Frame, len(places))
	for i := range places {
		stacks[i] = places[i].Stack
	}
	lines := callsite.Lines(stacks)
	held := map[runs.Frame]uint64{}
	for i := range places {
		held[lines[i]] += places[i].Bytes
	}
	delete(held, runs.Frame{})
	order := slices.SortedFunc(maps.Keys(held), func(a, b runs.Frame) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	number := map[runs.Frame]int{}
	for i, f := range order {
		number[f] = i + 1
		n.legend = append(n.legend, legendLine{frameName(f), held[f]})
	}
	for i := range places {
		n.add(&places[i], lines[i], number[lines[i]])
	}
}

func (n *node) add(p *runs.Place, line runs.Frame, number int) {
	n.bytes += p.Bytes
	at := n
	if p.Tag != "" {
		at = at.child("["+words.Escape(p.Tag)+"]", "tag "+words.Escape(p.Tag), 0)
		at.bytes += p.Bytes
	}
	inside := 0 // of the line, from its frame on
	for _, f := range slices.Backward(callsite.Own(p.Stack)) {
		if f == line {
			inside = number
		}
		at = at.child(frameName(f), words.Escape(f.File)+" "+frameName(f), inside)
		at.bytes += p.Bytes
	}
}

func frameName(f runs.Frame) string {
	if f.Function == "" {
		return Line(f)
	}
	return words.Escape(f.Function) + " " + Line(f)
}

func (n *node) sort() {
	slices.SortStableFunc(n.children, func(a, b *node) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, c := range n.children {
		c.sort()
	}
}

func (n *node) depth() int {
	d := 0
	for _, c := range n.children {
		d = max(d, c.depth())
	}
	return d + 1
}

const (
	svgWidth = 1200
	svgRow   = 18
	svgGap   = 14
)

// AppendFlameSVG appends the flame graphs of the peaks as one picture. Frames
// tell their line and bytes when pointed at.
func AppendFlameSVG(dst []byte, r *runs.Run) []byte {
	roots := flames(r)
	height := 40
	for _, n := range roots {
		height += n.height()
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", svgWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="6" y="20" font-size="14">%s</text>`+"\n", html.EscapeString(words.Escape(r.Command)))
	if len(roots) == 0 {
		b.WriteString(`<text x="6" y="38">no device memory was seen</text>` + "\n")
	}
	y := 30
	for _, n := range roots {
		n.svg(&b, 0, svgWidth, y, 0)
		n.svgLegend(&b, y+n.depth()*svgRow)
		y += n.height()
	}
	b.WriteString("</svg>\n")
	return append(dst, b.String()...)
}

func (n *node) svg(b *strings.Builder, x, width float64, y, level int) {
	const narrowest = 0.5
	if width < narrowest {
		return
	}
	fmt.Fprintf(b, `<g><title>%s, %s</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="white"/>`,
		html.EscapeString(n.title), words.Bytes(n.bytes), x, y, width, svgRow-1, lineColor(n.line, level))
	if cells := int(width / 7); cells > 4 {
		label := words.Truncate(n.name+"  "+words.Bytes(n.bytes), cells)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, x+3, y+13, html.EscapeString(label))
	}
	b.WriteString("</g>\n")
	for _, c := range n.children {
		w := width * float64(c.bytes) / float64(max(n.bytes, 1))
		c.svg(b, x, w, y+svgRow, level+1)
		x += w
	}
}

// maxLegend is how many lines a legend names; those beyond share the last colour.
const maxLegend = 8

// lineColor is the colour of a line, a little lighter with each level; what is of
// several lines is grey.
func lineColor(line, level int) string {
	if line == 0 {
		return fmt.Sprintf("hsl(40 12%% %d%%)", 92-level%4*3)
	}
	hues := [maxLegend]int{205, 32, 140, 350, 270, 60, 175, 310}
	return fmt.Sprintf("hsl(%d 62%% %d%%)", hues[min(line, maxLegend)-1], 74+level%4*3)
}

// height is what a graph takes with its legend.
func (n *node) height() int { return (n.depth()+min(len(n.legend), maxLegend))*svgRow + svgGap }

// svgLegend names the lines below a graph.
func (n *node) svgLegend(b *strings.Builder, y int) {
	for i, l := range n.legend[:min(len(n.legend), maxLegend)] {
		name, bytes := l.name, l.bytes
		if more := n.legend[i+1:]; i == maxLegend-1 && len(more) > 0 {
			name = fmt.Sprintf("%s and %d more", name, len(more))
			for _, x := range more {
				bytes += x.bytes
			}
		}
		at := y + i*svgRow
		fmt.Fprintf(b, `<rect x="6" y="%d" width="11" height="11" fill="%s"/><text x="22" y="%d">%s  %s</text>`+"\n", at+3, lineColor(i+1, 0), at+13, html.EscapeString(name), words.Bytes(bytes))
	}
}

// AppendFlame appends the same as text: a tree with bars.
func AppendFlame(dst []byte, r *runs.Run, width int, ascii bool) []byte {
	p := printer{o: Options{ASCII: ascii}, dst: dst}
	if width == 0 {
		width = 100
	}
	for _, n := range flames(r) {
		p.flame(n, n.bytes, 0, width)
	}
	return p.dst
}

func (p *printer) flame(n *node, of uint64, level, width int) {
	name := words.Fit(strings.Repeat("  ", level)+n.name, max(20, width-34))
	p.line("%s  %s  %s", name, words.PadLeft(words.Bytes(n.bytes), 10), bar(n.bytes, of))
	for _, c := range n.children {
		if c.bytes*100 < of { // less than one percent
			continue
		}
		p.flame(c, of, level+1, width)
	}
}
