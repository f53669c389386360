package top

import (
	"slices"

	"github.com/ttmon/ttmon/internal/view/sheet"
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
	now, since := sheet.Part{Title: "Now"}, sheet.Part{Title: "Since ttmon top was started"}
	for _, n := range s.notices() {
		now.Notes = append(now.Notes, sheet.Note{Level: n.level, Text: n.text})
	}
	if len(now.Notes) == 0 {
		now.Notes = []sheet.Note{{Text: "Nothing to say: all is well."}}
	}
	for _, e := range slices.Backward(s.log) {
		since.Pairs = append(since.Pairs, sheet.Pair{Name: e.Time.Local().Format("Jan 2 15:04:05"), Value: sheet.Value{Text: e.Text, Level: e.Level}})
	}
	if len(s.log) == 0 {
		since.Notes = []sheet.Note{{Text: "nothing has happened"}}
	}
	p.sheet.Draw(&s.hits, area, sheet.Screen(area.W, now, since))
}
