package sheet

import (
	"fmt"
	"html"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// colors are those of holders on a page; all others share the last one.
var colors = []string{"#2a9d8f", "#e9c46a", "#8e6bbf", "#5a9e4b", "#4477aa", "#d1495b", "#66c2cd", "#b0903d", "#8d99ae"}

func hex(color int) string {
	if color == 0 {
		return colors[len(colors)-1]
	}
	return colors[min(color, len(colors))-1]
}

const style = `body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.25em}h2{font-size:1em}table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums}.v{font-size:1.1em;font-weight:600}.k{display:inline-block;width:.9em;height:.9em;margin-right:.4em}
svg{width:100%;height:auto}td svg{width:8em;height:.7em}.d,.gone{color:#666}.critical{color:#b22}.warning{color:#a60}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1c}.d,.gone{color:#999}.critical{color:#f77}.warning{color:#fb5}}`

// AppendHTML appends a sheet as a page of its own: one file without anything from
// elsewhere, to be sent.
func AppendHTML(dst []byte, s *Sheet) []byte {
	p := &page{}
	s.Draw(p)
	return append(dst, p.String()+"</body></html>\n"...)
}

// page is the medium of HTML.
type page struct{ strings.Builder }

// put writes markup. Strings among the arguments are escaped.
func (p *page) put(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = html.EscapeString(s)
		}
	}
	fmt.Fprintf(p, format, args...)
}

// Head begins the page.
func (p *page) Head(s *Sheet) {
	p.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><style>" + style + "</style>")
	p.put("<title>%s</title></head><body>\n<h1>%s</h1>\n", s.Title, s.Title)
	if s.Status != nil {
		p.put("<p class=\"v\">%s</p>\n", s.Status.Text)
	}
}

// Begin begins a part; one that is folded opens on demand.
func (p *page) Begin(x *Part) {
	switch {
	case x.Folded:
		p.put("<details><summary>%s</summary>\n", x.Title)
	case x.Title != "":
		p.put("<h2>%s</h2>\n", x.Title)
	}
}

// End ends a part.
func (p *page) End(x *Part) {
	if x.Folded {
		p.WriteString("</details>\n")
	}
}

// Pairs is a table of two columns.
func (p *page) Pairs(list []Pair) {
	p.WriteString("<table>\n")
	for i := range list {
		v := &list[i].Value
		p.put("<tr><th>%s</th><td class=\"%s\" title=\"%s\">%s</td></tr>\n", list[i].Name, class(v), v.Note, v.Full())
	}
	p.WriteString("</table>\n")
}

func class(v *Value) string {
	switch {
	case v.Gone:
		return "gone"
	case v.Level > model.Fine:
		return v.Level.String()
	}
	return ""
}

// Table is a table; its rows have the colours of the map.
func (p *page) Table(t *Table) {
	p.WriteString("<table><tr>")
	for _, c := range t.Columns {
		p.put("<th class=\"%s\" title=\"%s\">%s</th>", right(&c), c.Help, c.Head)
	}
	for _, r := range t.Rows {
		p.WriteString("</tr>\n<tr>")
		for i := range r.Cells {
			p.cell(t, i, &r)
		}
	}
	p.WriteString("</tr></table>\n")
	if t.More != "" {
		p.put("<p class=\"d\">%s</p>\n", t.More)
	}
}

func right(c *Column) string {
	if c.Right {
		return "n"
	}
	return ""
}

func (p *page) cell(t *Table, i int, r *Row) {
	c, v := &t.Columns[i], &r.Cells[i]
	if c.Bar {
		if v.N != nil {
			p.put("<td><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\"><rect width=\"%.1f\" height=\"8\" fill=\"%s\"/></svg></td>", 100**v.N/max(t.Largest(i), 1), hex(r.Color))
		}
		return
	}
	p.put("<td class=\"%s\" title=\"%s\">", strings.TrimSpace(right(c)+" "+class(v)), v.Note)
	if i == 0 && r.Color > 0 {
		p.put("<span class=\"k\" style=\"background:%s\"></span>", hex(r.Color))
	}
	p.put("%s</td>", v.Text)
}

// Map draws the bank to scale: each block in the colour of its line, with its size and
// age where the pointer is, and below it what was asked for.
func (p *page) Map(m *Map) {
	const width, height = 1000.0, 40.0
	scale := width / float64(m.Size)
	p.put("<svg viewBox=\"0 0 %g 70\" role=\"img\" aria-label=\"the bank\"><rect width=\"%g\" height=\"%g\" fill=\"#88888822\"/>\n", width, width, height)
	for _, s := range m.Spans {
		if s[0] >= m.Base {
			p.put("<rect x=\"%.3f\" width=\"%.3f\" height=\"%g\" fill=\"%s\" stroke=\"#0003\" stroke-width=\".5\"><title>%s</title></rect>\n",
				float64(s[0]-m.Base)*scale, float64(s[1])*scale, height, hex(int(s[2])), m.label(s))
		}
	}
	if m.Piece != nil {
		w := min(float64(m.Piece.Size)*scale, width)
		at := min(float64(m.Piece.At-m.Base)*scale, width-w)
		p.put("<rect x=\"%.3f\" y=\"44\" width=\"%.3f\" height=\"10\" fill=\"#d1495b\"/><text x=\"%.3f\" y=\"67\" font-size=\"12\" fill=\"currentColor\">%s</text>", at, max(w, 1), min(at, width-200), m.Piece.Label)
	}
	p.WriteString("</svg>\n")
	if m.LeftOut > 0 {
		p.put("<p class=\"d\">%d smaller blocks are not drawn</p>\n", m.LeftOut)
	}
}

// Notes is a list.
func (p *page) Notes(list []Note) {
	p.WriteString("<ul>\n")
	for _, n := range list {
		p.put("<li>%s</li>\n", n.Text)
	}
	p.WriteString("</ul>\n")
}
