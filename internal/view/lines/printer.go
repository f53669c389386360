package lines

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Options are the properties of a terminal. The zero Options are for a file: no
// colour, a layout of 100 columns with nothing cut off at the right.
type Options struct {
	Width int  // columns of the terminal; 0: not a terminal
	Color bool // ANSI colours
	ASCII bool // nothing but ASCII, for terminals without UTF-8
}

// LayoutWidth is the width to lay columns out for.
func (o *Options) LayoutWidth() int {
	if o.Width <= 0 {
		return 100
	}
	return o.Width
}

// Printer appends lines to a buffer, for a terminal or a file.
type Printer struct {
	Options
	Buf  []byte
	Clip bool // nothing goes beyond Width, where there is one
	used int  // cells of the line so far, if Clip
}

// Write appends text to the line.
func (p *Printer) Write(s string, st cells.Style) {
	if s == "" {
		return
	}
	if p.Clip && p.Width > 0 {
		w := words.Width(s)
		if room := p.Width - p.used; w > room {
			s, w = words.Truncate(s, room), max(0, room)
		}
		p.used += w
	}
	code := sgr(st)
	if !p.Color {
		code = ""
	}
	p.Buf = append(p.Buf, code...)
	if p.ASCII {
		end := len(p.Buf) + words.Width(s)
		p.Buf = cells.AppendASCII(p.Buf, s)
		if wider := len(p.Buf) - end; wider > 0 && p.Clip && p.Width > 0 && p.used >= p.Width { // nothing before it gave way
			p.Buf = p.Buf[:end]
		}
	} else {
		p.Buf = append(p.Buf, s...)
	}
	if code != "" {
		p.Buf = append(p.Buf, "\x1b[0m"...)
	}
}

// sgr is how a terminal is told a style; empty: as all text is.
func sgr(st cells.Style) string {
	switch st {
	case cells.Faint, cells.Axis, cells.Heading:
		return "\x1b[2m"
	case cells.Strong:
		return "\x1b[1m"
	case cells.Good:
		return "\x1b[32m"
	case cells.Warn:
		return "\x1b[33m"
	case cells.Bad:
		return "\x1b[1;31m"
	}
	if i := int(st) - int(cells.Series0); i >= 0 && i < len(series) {
		return fmt.Sprintf("\x1b[%dm", series[i])
	}
	return ""
}

// series are the colours of lines and holders.
var series = [cells.NumSeries]int{36, 33, 35, 32, 34, 31, 96, 93}

// Newline ends a line; blanks at its end are taken away.
func (p *Printer) Newline() {
	for n := len(p.Buf); n > 0 && p.Buf[n-1] == ' '; n-- {
		p.Buf = p.Buf[:n-1]
	}
	p.Buf = append(p.Buf, '\n')
	p.used = 0
}

// Line appends a line of one style.
func (p *Printer) Line(s string, st cells.Style) {
	p.Write(s, st)
	p.Newline()
}

// Lines appends lines.
func (p *Printer) Lines(list ...Line) {
	for _, l := range list {
		for _, s := range l {
			p.Write(s.Text, s.Style)
		}
		p.Newline()
	}
}

// Rule draws a thin line over the whole width, with a title in it if there is one.
func (p *Printer) Rule(title string) {
	lead := 0
	if title != "" {
		p.Write("─ ", cells.Faint)
		p.Write(title+" ", cells.Text)
		lead = words.Width(title) + 3
	}
	p.Line(strings.Repeat("─", max(0, p.LayoutWidth()-lead)), cells.Faint)
}

// Sentence appends prose, wrapped on a terminal.
func (p *Printer) Sentence(s string, st cells.Style) {
	width := p.Width
	if width > 0 {
		width--
	}
	p.Lines(Hang(Plain(" "), s, st, width, 2)...)
}

// Table appends a table with its heads.
func (p *Printer) Table(t *Table) {
	at := t.Layout(p.LayoutWidth())
	if t.HasHeads() {
		p.Lines(t.Head(at, cells.Faint))
		if t.Ruled && (len(t.Rows) == 0 || t.Rows[0].Title == "") {
			p.Rule("")
		}
	}
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Title != "" {
			p.Rule(r.Title)
		} else {
			p.Lines(t.Line(at, r, p.Width > 0))
		}
	}
}

// HasHeads reports whether a column has a head.
func (t *Table) HasHeads() bool {
	for i := range t.Columns {
		if t.Columns[i].Head != "" {
			return true
		}
	}
	return false
}
