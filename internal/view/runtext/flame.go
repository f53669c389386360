package runtext

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/view/words"
)

// node is a frame of a flame graph: what it and all it called held.
type node struct {
	name     string
	title    string
	bytes    uint64
	children []*node
}

func (n *node) child(name, title string) *node {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	c := &node{name: name, title: title}
	n.children = append(n.children, c)
	return c
}

// flames makes a tree per pool of each group of chips: what was held at the peak,
// from the outermost frame inwards.
func flames(r *runreport.Report) []*node {
	var roots []*node
	for _, g := range alike(r.Chips) {
		for _, x := range g.pools {
			if len(x.AtPeak) == 0 {
				continue
			}
			name := words.PoolName(x.Pool) + " on " + g.label
			root := &node{name: name, title: name + ": peak " + words.Bytes(x.Peak)}
			for i := range x.AtPeak {
				root.add(&x.AtPeak[i])
			}
			roots = append(roots, root)
		}
	}
	for _, root := range roots {
		root.sort()
	}
	return roots
}

func (n *node) add(p *runreport.Place) {
	n.bytes += p.Bytes
	at := n
	if p.Tag != "" {
		at = at.child("["+words.Escape(p.Tag)+"]", "tag "+words.Escape(p.Tag))
		at.bytes += p.Bytes
	}
	for _, f := range slices.Backward(p.Stack) {
		name := Line(f)
		if f.Function != "" {
			name = words.Escape(f.Function) + " " + name
		}
		at = at.child(name, words.Escape(f.File)+" "+name)
		at.bytes += p.Bytes
	}
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
func AppendFlameSVG(dst []byte, r *runreport.Report) []byte {
	roots := flames(r)
	height := 40
	for _, n := range roots {
		height += n.depth()*svgRow + svgGap
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", svgWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="6" y="20" font-size="14">%s</text>`+"\n", html.EscapeString(words.Escape(strings.Join(r.Command, " "))))
	if len(roots) == 0 {
		b.WriteString(`<text x="6" y="38">no device memory was seen</text>` + "\n")
	}
	y := 30
	for _, n := range roots {
		n.svg(&b, 0, svgWidth, y, 0)
		y += n.depth()*svgRow + svgGap
	}
	b.WriteString("</svg>\n")
	return append(dst, b.String()...)
}

func (n *node) svg(b *strings.Builder, x, width float64, y, level int) {
	const narrowest = 0.5
	if width < narrowest {
		return
	}
	shade := 92 - (level*7)%36
	fmt.Fprintf(b, `<g><title>%s, %s</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="hsl(%d 70%% %d%%)" stroke="white"/>`,
		html.EscapeString(n.title), words.Bytes(n.bytes), x, y, width, svgRow-1, 28+level%4*6, shade)
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

// AppendFlame appends the same as text: a tree with bars.
func AppendFlame(dst []byte, r *runreport.Report, width int, ascii bool) []byte {
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
	p.line("%s  %s  %s", name, words.PadLeft(words.Bytes(n.bytes), 10), p.bar(n.bytes, of))
	for _, c := range n.children {
		if c.bytes*100 < of { // less than one percent
			continue
		}
		p.flame(c, of, level+1, width)
	}
}
