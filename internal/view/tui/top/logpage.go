package top

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// sheetPage is a page that is read, and scrolled.
type sheetPage struct{ sheet widget.Sheet }

func (p *sheetPage) keys() []binding { return nil }

func (p *sheetPage) key(_ *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		p.sheet.Move(m)
	}
	return nil
}

// logPage is all notices in full, and the events of this run, newest first.
type logPage struct{ sheetPage }

func (p *logPage) draw(s *State, area cells.Area) {
	out := []widget.Entry{{Heading: "Now"}}
	notes := s.notices()
	for _, n := range notes {
		out = append(out, widget.Entry{Value: n.text, Style: n.style, Wide: true})
	}
	if len(notes) == 0 {
		out = append(out, widget.Entry{Value: "Nothing to say: all is well.", Style: cells.Good, Wide: true})
	}
	out = append(out, widget.Entry{Heading: "Since ttmon top was started"})
	for i := len(s.log) - 1; i >= 0; i-- {
		e := &s.log[i]
		out = append(out, widget.Entry{Name: e.Time.Local().Format("Jan 2 15:04:05"), Value: e.Text, Style: cells.OfNote(e.Level)})
	}
	if len(s.log) == 0 {
		out = append(out, widget.Entry{Value: "nothing has happened", Wide: true})
	}
	p.sheet.Draw(&s.hits, area, out)
}
