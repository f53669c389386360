package why

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/view/words"
)

// colors are those of holders on a page; all others share the last one.
var colors = []string{"#2a9d8f", "#e9c46a", "#8e6bbf", "#5a9e4b", "#4477aa", "#d1495b", "#66c2cd", "#b0903d", "#8d99ae"}

func color(holder int) string {
	if holder == 0 {
		return colors[len(colors)-1]
	}
	return colors[min(holder, len(colors))-1]
}

const style = `body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.25em}table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}.v{font-size:1.1em;font-weight:600}.k{display:inline-block;width:.9em;height:.9em;margin-right:.4em}
svg{width:100%;height:auto}pre,code{font:13px/1.4 ui-monospace,monospace}.d{color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1c}.d{color:#999}}`

// AppendHTML appends a record as a page of its own: one file without anything
// from elsewhere, to be sent.
func AppendHTML(dst []byte, r *failure.Record, now time.Time) []byte {
	var b strings.Builder
	e := html.EscapeString
	title := fmt.Sprintf("%s (%d): %s", Program(r), r.Process.PID, What(r))
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>%s</title><style>%s</style></head><body>\n", e(title), style)
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p>%s, %s</p>\n", e(title), e(Where(r)), r.Time.Local().Format("2006-01-02 15:04:05"))
	if r.Count > 1 {
		fmt.Fprintf(&b, "<p>%d times from %s to %s; this is the one of %s</p>\n", r.Count, clock(r.First), clock(r.Last), clock(r.Time))
	}
	fmt.Fprintf(&b, "<p class=\"v\">%s</p>\n<table>\n", e(Verdict(r)))
	row := func(k, v string) { fmt.Fprintf(&b, "<tr><th>%s</th><td>%s</td></tr>\n", e(k), e(v)) }
	row("asked for", Requested(r))
	if line, function := Requester(r); line != "" {
		row("by", strings.TrimSpace(line+" "+function))
	}
	row("free", Free(r))
	b.WriteString("</table>\n")
	holders := Holders(r)
	appendSVG(&b, r, holders)
	appendHolders(&b, r, holders)
	if list := Fixes(r, now); len(list) > 0 {
		fmt.Fprintf(&b, "<p>%s</p><ul>\n", e(fixLabel(r)))
		for _, s := range list {
			fmt.Fprintf(&b, "<li>%s</li>\n", e(s))
		}
		b.WriteString("</ul>\n")
	}
	for _, s := range append(Doubts(r), Others(r)...) {
		fmt.Fprintf(&b, "<p class=\"d\">note: %s</p>\n", e(s))
	}
	if len(r.Stack) > 0 {
		b.WriteString("<details><summary>stack of the request</summary><pre>")
		b.WriteString(e(strings.Join(frames(r.Stack), "\n")))
		b.WriteString("</pre></details>\n")
	}
	b.WriteString("</body></html>\n")
	return append(dst, b.String()...)
}

func fixLabel(r *failure.Record) string {
	switch r.Kind {
	case failure.Clash:
		return "they would not have overlapped"
	case failure.Trace:
		return "all traces would have fitted"
	case failure.NoRoom:
	}
	return "it would have fitted"
}

// appendSVG draws the bank to scale: each block in the colour of its line, with
// its size and age where the pointer is, and the missing piece below.
func appendSVG(b *strings.Builder, r *failure.Record, holders []Holder) {
	m := newPageMap(r, holders)
	if m == nil {
		return
	}
	const width, height = 1000.0, 40.0
	scale := width / float64(m.Capacity)
	fmt.Fprintf(b, "<svg viewBox=\"0 0 %g 70\" role=\"img\" aria-label=\"the bank\"><rect width=\"%g\" height=\"%g\" fill=\"#88888822\"/>\n", width, width, height)
	for _, x := range m.Blocks {
		if x[0] < m.Base {
			continue
		}
		name := words.NoLine
		if n := x[2]; n > 0 {
			name = strings.TrimSpace(holders[n-1].Name() + " " + holders[n-1].Function)
		}
		age := ""
		if x[3] > 0 {
			age = ", made " + words.Duration(time.Duration(x[3])*time.Millisecond) + " before"
		}
		fmt.Fprintf(b, "<rect x=\"%.3f\" width=\"%.3f\" height=\"%g\" fill=\"%s\" stroke=\"#0003\" stroke-width=\".5\"><title>%s: %s at %#x%s</title></rect>\n",
			float64(x[0]-m.Base)*scale, float64(x[1])*scale, height, color(int(x[2])), html.EscapeString(name), words.Bytes(x[1]), x[0], age)
	}
	w := min(float64(m.Piece)*scale, width)
	at := min(float64(m.Hole-m.Base)*scale, width-w)
	fmt.Fprintf(b, "<rect x=\"%.3f\" y=\"44\" width=\"%.3f\" height=\"10\" fill=\"#d1495b\"/><text x=\"%.3f\" y=\"67\" font-size=\"12\" fill=\"currentColor\">%s</text></svg>\n",
		at, max(w, 1), min(at, width-200), html.EscapeString(m.Label))
	if m.LeftOut > 0 {
		fmt.Fprintf(b, "<p class=\"d\">%d smaller blocks are not drawn</p>\n", m.LeftOut)
	}
}

func appendHolders(b *strings.Builder, r *failure.Record, holders []Holder) {
	if len(holders) == 0 {
		return
	}
	fmt.Fprintf(b, "<table><tr><th>line</th><th></th><th>a %s</th><th>blocks</th><th>oldest</th></tr>\n", Bank(r))
	for i := range holders {
		h := &holders[i]
		age := ""
		if !h.Oldest.IsZero() {
			age = words.Duration(r.Time.Sub(h.Oldest))
		}
		fmt.Fprintf(b, "<tr><td title=\"%s\"><span class=\"k\" style=\"background:%s\"></span>%s</td><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td></tr>\n",
			html.EscapeString(strings.Join(frames(h.Stack), "\n")), color(h.Number), html.EscapeString(h.Name()), html.EscapeString(strings.TrimSpace(h.Function+" "+h.Tensor)), words.Bytes(h.Bytes), h.Blocks, age)
	}
	b.WriteString("</table>\n")
}
