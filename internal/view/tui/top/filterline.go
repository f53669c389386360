package top

import (
	"errors"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/filter"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// filterLine is the filter being typed. It takes effect with every key; while
// it is wrong, the last right one stays and the error is shown.
type filterLine struct {
	line *widget.Line
	old  string
	err  *filter.Error
}

func (s *State) openFilter() []tui.Effect {
	s.dialog = &filterLine{line: widget.NewLine(s.proc.filterText), old: s.proc.filterText}
	s.focus = processes
	return nil
}

func (f *filterLine) key(s *State, k tui.Key) []tui.Effect {
	switch k {
	case "enter", "f3", "f4":
		if f.err == nil {
			s.dialog = nil
		}
	case "esc", "f10":
		s.proc.setFilter(s, f.old)
		s.dialog = nil
	case "up", "down", "pgup", "pgdn":
		m, _ := widget.MotionOf(k)
		s.proc.move(s, m)
	default:
		if f.line.Key(k) {
			f.apply(s)
		}
	}
	return nil
}

func (f *filterLine) paste(s *State, text string) {
	f.line.Insert(text)
	f.apply(s)
}

func (f *filterLine) apply(s *State) {
	f.err, _ = errors.AsType[*filter.Error](s.proc.setFilter(s, f.line.Text))
}

func (f *filterLine) draw(s *State, screen cells.Area) {
	rest, row := screen.Bottom(1)
	row.Fill(' ', cells.Text)
	x := row.Put(0, 0, "Filter: ", cells.Key)
	f.line.Draw(row.Sub(x, 0, row.W-x, 1), cells.Text)
	_, above := rest.Bottom(1)
	above.Fill(' ', cells.Text)
	if f.err != nil {
		at := x + words.Width(words.Escape(f.line.Text[:min(f.err.Pos, len(f.line.Text))]))
		msg := f.err.Msg
		if room := above.W - at - 2; words.Width(msg) > room {
			at = max(above.W-words.Width(msg)-2, 0)
		} else {
			above.Set(at, 0, '▼', cells.Bad)
			at += 2
		}
		above.Put(at, 0, words.Truncate(msg, above.W-at), cells.Bad)
		return
	}
	hint := "user=root  dram>1G  device=3  cmd~llama  time<1h  and or not ( )   Enter keeps it, Esc drops it"
	above.Put(1, 0, words.Truncate(hint, above.W-1), cells.Faint)
}
