package text

import (
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/view/words"
)

// Options say for whom something is printed. The zero Options are for a file:
// no colour, a layout of 100 columns with nothing cut off at the right.
type Options struct {
	Width   int            // columns of the terminal; 0: not a terminal
	Color   bool           // ANSI colours
	ASCII   bool           // nothing but ASCII, for terminals without UTF-8
	Version string         // of ttmon, for the head line
	Zone    *time.Location // of times; nil means local
	Plain   bool           // no bars: a narrower, quieter table
	Who     bool           // whom to ask about each process
}

// layoutWidth is the width to lay columns out for.
func (o *Options) layoutWidth() int {
	if o.Width <= 0 {
		return 100
	}
	return o.Width
}

func (o *Options) zone() *time.Location {
	if o.Zone == nil {
		return time.Local
	}
	return o.Zone
}

// style is what a piece of text means; only health has colours.
type style uint8

const (
	plain style = iota
	faint       // headings, rules, what is beside the point
	strong
	good
	warn
	bad
)

var sgr = [...]string{plain: "", faint: "\x1b[2m", strong: "\x1b[1m", good: "\x1b[32m", warn: "\x1b[33m", bad: "\x1b[1;31m"}

// printer appends styled text to a buffer.
type printer struct {
	buf []byte
	Options
	clip bool // nothing goes beyond Width, where there is one
	used int  // cells of the line so far, if clip
}

// write appends text, cut at the width.
func (p *printer) write(s string, st style) {
	if s == "" {
		return
	}
	if p.clip && p.Width > 0 {
		w := words.Width(s)
		if room := p.Width - p.used; w > room {
			s, w = words.Truncate(s, room), max(0, room)
		}
		p.used += w
	}
	p.appendStyled(s, st)
}

// appendStyled appends text that is known to fit.
func (p *printer) appendStyled(s string, st style) {
	if p.ASCII {
		s = ascii(s)
	}
	if !p.Color || st == plain {
		p.buf = append(p.buf, s...)
		return
	}
	p.buf = append(p.buf, sgr[st]...)
	p.buf = append(p.buf, s...)
	p.buf = append(p.buf, "\x1b[0m"...)
}

// newline ends a line; blanks at its end are taken away.
func (p *printer) newline() {
	for n := len(p.buf); n > 0 && p.buf[n-1] == ' '; n-- {
		p.buf = p.buf[:n-1]
	}
	p.buf = append(p.buf, '\n')
	p.used = 0
}

func (p *printer) line(s string, st style) {
	p.write(s, st)
	p.newline()
}

// blanks appends n spaces.
func (p *printer) blanks(n int) {
	if p.clip && p.Width > 0 {
		n = min(n, p.Width-p.used)
		p.used += max(0, n)
	}
	for range n {
		p.buf = append(p.buf, ' ')
	}
}

// rule draws a thin line over the whole width, with a title in it if there is one.
func (p *printer) rule(title string) {
	width := p.layoutWidth()
	lead := ""
	if title != "" {
		lead = "─ " + title + " "
		p.write("─ ", faint)
		p.write(title, plain)
		p.write(" ", plain)
	}
	p.appendStyled(strings.Repeat("─", max(0, width-words.Width(lead))), faint)
	p.newline()
}

// substitute is what stands for our own drawing where only ASCII is shown,
// cell for cell; 0: nothing does.
func substitute(r rune) byte {
	switch r {
	case '─', '–', '·', '−', '▃':
		return '-'
	case '▁':
		return '_'
	case '▅', '▒':
		return '+'
	case '▆':
		return '*'
	case '▇', '▓', '■':
		return '#'
	case '█':
		return '@'
	case '×':
		return 'x'
	case '→':
		return '>'
	case '━', '▄':
		return '='
	case '░', '▂':
		return '.'
	case '├', '│', '┃':
		return '|'
	case '└':
		return '`'
	case '…':
		return '~'
	case '°':
		return ' '
	case '↓':
		return '!'
	case '≥':
		return '>'
	case '┏', '┳', '┓', '┡', '╇', '┩', '┴', '┘':
		return '+'
	}
	return 0
}

// ASCII is text for terminals that show nothing else.
func ASCII(b []byte) []byte { return []byte(ascii(string(b))) }

// ascii replaces everything that is not ASCII without changing the width.
func ascii(s string) string {
	clean := true
	for i := range len(s) {
		clean = clean && s[i] < 0x80
	}
	if clean {
		return s
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		switch sub := substitute(r); {
		case r < 0x80:
			out = append(out, byte(r))
		case sub != 0:
			out = append(out, sub)
		default:
			for range words.Width(string(r)) {
				out = append(out, '?')
			}
		}
	}
	return string(out)
}
