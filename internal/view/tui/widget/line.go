package widget

import (
	"strings"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Line is a line of text being edited, with the keys of a shell.
type Line struct {
	Text string
	at   int // byte offset of the cursor
}

// NewLine is a line with the cursor at its end.
func NewLine(text string) *Line { return &Line{text, len(text)} }

// Key edits the line; ok is false for keys that do not.
func (l *Line) Key(k tui.Key) (ok bool) {
	switch k {
	case "left", "ctrl-b":
		_, n := utf8.DecodeLastRuneInString(l.Text[:l.at])
		l.at -= n
	case "right", "ctrl-f":
		_, n := utf8.DecodeRuneInString(l.Text[l.at:])
		l.at += n
	case "home", "ctrl-a":
		l.at = 0
	case "end", "ctrl-e":
		l.at = len(l.Text)
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(l.Text[:l.at])
		l.Text, l.at = l.Text[:l.at-n]+l.Text[l.at:], l.at-n
	case "delete", "ctrl-d":
		_, n := utf8.DecodeRuneInString(l.Text[l.at:])
		l.Text = l.Text[:l.at] + l.Text[l.at+n:]
	case "ctrl-u":
		l.Text, l.at = l.Text[l.at:], 0
	case "ctrl-k":
		l.Text = l.Text[:l.at]
	case "ctrl-w":
		head := strings.TrimRight(l.Text[:l.at], " ")
		head = head[:strings.LastIndexByte(head, ' ')+1]
		l.Text, l.at = head+l.Text[l.at:], len(head)
	default:
		r, typed := k.Rune()
		if !typed {
			return false
		}
		l.Insert(string(r))
	}
	return true
}

// Insert puts text at the cursor, control characters as blanks.
func (l *Line) Insert(s string) {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	l.Text = l.Text[:l.at] + s + l.Text[l.at:]
	l.at += len(s)
}

// Draw draws the line so that the cursor is in view.
func (l *Line) Draw(row cells.Area, style cells.Style) {
	head, tail := words.Escape(l.Text[:l.at]), words.Escape(l.Text[l.at:])
	skip := max(words.Width(head)-row.W+1, 0)
	x := row.Put(-skip, 0, head, style)
	row.Put(x, 0, tail, style)
	row.Cursor(x, 0)
}
