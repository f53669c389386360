package top

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
)

// memoryPage is ttmon mem inside ttmon top.
type memoryPage struct{ mem *mem.State }

// openMemory opens the memory of the selected device. The screens are kept:
// their high-water marks and the mark count from the first time on.
func (s *State) openMemory() []tui.Effect {
	if s.memory == nil {
		s.memory = mem.New(mem.Options{Config: s.cfg, Only: s.cfg.Top.Devices.Only, History: s.hist})
		if s.live != nil {
			s.memory.Sample(s.live)
		}
	}
	s.memory.Pause(s.paused)
	if d := s.dev.selected(s); d != nil && (s.focus == devices || s.page != nil) {
		s.memory.Open(d.BusID)
	}
	s.page = memoryPage{s.memory}
	return nil
}

func (p memoryPage) keys() []binding {
	out := []binding{{keys: []tui.Key{"q", "esc"}, help: "back", do: func(s *State) []tui.Effect {
		if !p.mem.Back() {
			s.page = nil
		}
		return nil
	}}}
	for _, b := range p.mem.Keys() {
		out = append(out, binding{keys: b.Keys, foot: b.Foot, help: b.Help, do: func(*State) []tui.Effect { return b.Do() }})
	}
	return out
}

func (p memoryPage) key(s *State, k tui.Key) []tui.Effect {
	p.mem.Move(k)
	return nil
}

func (p memoryPage) inspected(ev act.Inspected) { p.mem.Inspected(ev) }

func (p memoryPage) draw(s *State, area cells.Area) { p.mem.DrawIn(&s.hits, area) }
