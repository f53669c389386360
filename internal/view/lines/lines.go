// Package lines lays out lines of styled text: tables, facts with their names, and
// sentences. Text on a terminal, files and screens all take their lines from here, so
// that one place decides how wide a column is, which one gives way, where a sentence
// breaks, and what stands for a character that a terminal does not have.
//
// It stands below the views, which know what there is to say, and above cells, the
// paper of the screens. What a line says is escaped already.
package lines

import (
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Span is text of one style.
type Span struct {
	Text  string
	Style cells.Style
}

// S is a span.
func S(text string, st cells.Style) Span { return Span{text, st} }

// Line is a line, without its end.
type Line []Span

// Plain is a line of plain text.
func Plain(text string) Line { return Line{{Text: text}} }

// Styled is a line of one style.
func Styled(text string, st cells.Style) Line { return Line{{text, st}} }

// String is the text of a line, without blanks at its end.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Width is how many cells the line takes.
func (l Line) Width() (n int) {
	for _, s := range l {
		n += words.Width(s.Text)
	}
	return n
}

// Put draws a line into a row of a screen, and returns the column after it. Between
// spans of text the row stays as it is: a heading has a background.
func (l Line) Put(a cells.Area, x, y int) int {
	for _, s := range l {
		if s.Style == cells.Text && strings.Trim(s.Text, " ") == "" {
			x += len(s.Text)
			continue
		}
		x = a.Put(x, y, s.Text, s.Style)
	}
	return x
}

// Hang breaks a text that is too long into lines behind a label, all of them beginning
// where the first one does, and those behind the first a little further in. Width 0: it is
// not broken.
func Hang(label Line, text string, st cells.Style, width, further int) (list []Line) {
	indent := label.Width()
	parts := []string{text}
	if width > 0 && indent+words.Width(text) > width {
		parts = words.Wrap(text, max(width-indent-further, leastSentence))
	}
	for i, part := range parts {
		if i > 0 {
			label = Plain(blanks(indent + further))
		}
		list = append(list, append(label[:len(label):len(label)], Span{part, st}))
	}
	return list
}

// leastSentence is what a sentence has at least, however narrow the terminal is.
const leastSentence = 20

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }
