package top

import (
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// memoryPage is the memory of all chips: the page of the key m, and what ttmon mem
// begins with.
type memoryPage struct{ mem *mem.State }

// startMemory makes the page. It is kept: high-water marks and the mark count from then
// on.
func (s *State) startMemory() {
	s.memory = mem.New(mem.Options{
		Only: s.cfg.Top.Devices.Only, Recorded: s.o.Recorded,
		Chart: func(frame cells.Area, of history.Key, title string, form metric.Form, limit float64) {
			s.drawOne(frame, of, title, form, limit, cells.Series0, true)
		},
	})
	if s.live != nil {
		s.memory.Sample(s.live)
		s.memory.Show(s.shown, !s.past.IsZero())
	}
}

// openMemory opens the memory of the selected device.
func (s *State) openMemory() []tui.Effect {
	if s.memory == nil {
		s.startMemory()
	}
	if d := s.dev.selected(s); d != nil && (s.focus == devices || s.page != nil) {
		s.memory.Open(d.BusID)
	}
	s.page = memoryPage{s.memory}
	return nil
}

func (p memoryPage) keys() []binding {
	out := []binding{
		{keys: []tui.Key{"q"}, help: "back, and out at last", do: func(s *State) []tui.Effect { return p.back(s, quit) }},
		{keys: []tui.Key{"esc"}, help: "to the present, or back", do: func(s *State) []tui.Effect {
			if !s.past.IsZero() {
				s.present()
				return nil
			}
			return p.back(s, (*State).close)
		}},
	}
	for _, b := range p.mem.Keys() {
		out = append(out, binding{keys: b.Keys, foot: b.Foot, help: b.Help, do: func(*State) []tui.Effect { return b.Do() }})
	}
	if p.mem.Charts() {
		out = append(out, timeKeys()...)
	}
	return out
}

// back goes out by one. From the outermost it leaves the page, or does what is left to do
// where that is the first one.
func (p memoryPage) back(s *State, last func(*State) []tui.Effect) []tui.Effect {
	switch {
	case p.mem.Back():
	case s.o.Memory:
		return last(s)
	default:
		s.page = nil
	}
	return nil
}

func (p memoryPage) key(s *State, k tui.Key) []tui.Effect {
	if k == " " {
		return s.pause()
	}
	p.mem.Move(k)
	return nil
}

func (p memoryPage) inspected(ev act.Inspected) { p.mem.Inspected(ev) }

func (p memoryPage) draw(s *State, area cells.Area) { p.mem.Draw(&s.hits, area) }

func (p memoryPage) meanings() []widget.HelpLine { return mem.Meanings() }

// outermost reports whether there is nothing to go back to from the page of memory.
func (s *State) outermost() bool {
	p, ok := s.page.(memoryPage)
	return ok && s.o.Memory && p.mem.Outermost()
}

// wants is what the page of memory has to ask for, where it is open.
func (s *State) wants() []tui.Effect {
	if p, ok := s.page.(memoryPage); ok {
		return p.mem.Wants()
	}
	return nil
}
