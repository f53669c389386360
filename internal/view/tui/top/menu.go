package top

import (
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// menu is a dialog with a list to choose from.
type menu struct {
	title string
	hint  string
	items []menuItem
	list  widget.List
	many  bool // Space and Enter switch items on and off; else Enter chooses one
	pick  func(s *State, i int) []tui.Effect
}

type menuItem struct {
	text, help string
	on         bool
}

func (m *menu) key(s *State, k tui.Key) []tui.Effect {
	m.list.N = len(m.items)
	switch k {
	case "esc", "q", "f10":
		s.dialog = nil
	case "enter", " ":
		return m.choose(s, m.list.Sel)
	default:
		if mo, ok := widget.MotionOf(k); ok {
			m.list.Move(mo)
		} else if r, ok := k.Rune(); ok {
			m.jump(r)
		}
	}
	return nil
}

// jump goes to the next item that begins with a letter.
func (m *menu) jump(r rune) {
	for n := range len(m.items) {
		i := (m.list.Sel + 1 + n) % len(m.items)
		if strings.HasPrefix(strings.ToLower(m.items[i].text), strings.ToLower(string(r))) {
			m.list.Sel = i
			return
		}
	}
}

func (m *menu) choose(s *State, i int) []tui.Effect {
	if i >= len(m.items) {
		return nil
	}
	if !m.many {
		s.dialog = nil
	}
	return m.pick(s, i)
}

func (m *menu) draw(s *State, screen cells.Area) {
	m.list.N = len(m.items)
	w := words.Width(m.title) + 6
	for _, it := range m.items {
		w = max(w, 24+words.Width(it.help))
	}
	w = max(w, words.Width(m.hint)+4)
	box := widget.Center(screen, min(w, screen.W-2), min(len(m.items)+3, screen.H-2))
	box.Fill(' ', cells.Dialog)
	in := box.Box(m.title, cells.Strong)
	in, foot := in.Bottom(1)
	foot.Put(1, 0, words.Truncate(m.hint, foot.W-1), cells.Faint)
	m.list.Draw(&s.hits, in, cells.Selected, func(i int, row cells.Area) {
		it := m.items[i]
		x := 1
		if m.many {
			mark := "[ ] "
			if it.on {
				mark = "[x] "
			}
			x = row.Put(x, 0, mark, cells.Text)
		} else if it.on {
			row.Put(0, 0, "▸", cells.Text)
		}
		row.Put(x, 0, it.text, cells.Text)
		row.Put(max(x+words.Width(it.text)+1, 18), 0, words.Truncate(it.help, row.W-19), cells.Faint)
	}, func(i int) []tui.Effect { return m.choose(s, i) })
}

// openSort offers the columns to sort by.
func (s *State) openSort() []tui.Effect {
	m := &menu{title: "Sort by", hint: "Enter sorts, again to reverse; Esc leaves it"}
	now := s.sortField().Name
	fields := metric.Processes()
	for i, c := range fields {
		m.items = append(m.items, menuItem{text: c.Name, help: c.Help, on: c.Name == now})
		if c.Name == now {
			m.list.Sel = i
		}
	}
	m.pick = func(s *State, i int) []tui.Effect { return s.sortBy(fields[i].Name) }
	s.dialog = m
	return nil
}

// openMetrics offers what can be charted.
func (s *State) openMetrics() []tui.Effect {
	m := &menu{title: "Charts", hint: "Space switches a chart on or off; Esc when done", many: true}
	fill := func() {
		m.items = m.items[:0]
		for _, g := range s.gauges.All() {
			m.items = append(m.items, menuItem{text: g.Name, help: g.Help, on: slices.Contains(s.cfg.Top.Charts.Metrics, g.Name)})
		}
	}
	fill()
	m.pick = func(s *State, i int) []tui.Effect {
		c := &s.cfg.Top.Charts
		c.Metrics = toggle(c.Metrics, m.items[i].text)
		fill()
		return nil
	}
	s.dialog = m
	return nil
}

// toggle removes a word from a list or adds it at the end.
func toggle(list []string, word string) []string {
	if i := slices.Index(list, word); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return append(slices.Clone(list), word)
}
