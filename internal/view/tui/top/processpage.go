package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// processPage is everything known about one process.
type processPage struct {
	sheet  widget.Sheet
	target act.Target
	last   row // as it was when last seen
	seen   time.Time
	gone   bool
	more   *act.Inspected // nil: not answered yet
}

func (s *State) openProcess() []tui.Effect {
	r := s.proc.selected()
	if r == nil || r.parent {
		return nil
	}
	p := &processPage{target: act.Target{PID: r.p.PID, StartTicks: r.p.StartTicks, Name: r.command()}, last: *r, seen: s.shown.Time}
	s.page = p
	return []tui.Effect{act.Inspect{Target: p.target}}
}

func (p *processPage) keys() []binding {
	return []binding{
		{keys: []tui.Key{"f9"}, foot: "Kill", help: "send it a signal", do: func(s *State) []tui.Effect {
			s.proc.sel, s.proc.tagged = id{p.target.PID, p.target.StartTicks}, nil
			s.proc.restoreSelection()
			if s.proc.sel.pid != p.target.PID {
				s.showMessage(cells.Warn, "%d is gone", p.target.PID)
				return nil
			}
			return s.openKill()
		}},
		{keys: []tui.Key{"r"}, foot: "Reload", help: "read environment and buffers again", do: func(*State) []tui.Effect { return []tui.Effect{act.Inspect{Target: p.target}} }},
	}
}

func (p *processPage) key(_ *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		p.sheet.Move(m)
	}
	return nil
}

func (p *processPage) inspected(ev act.Inspected) {
	if ev.Target.PID == p.target.PID && ev.Target.StartTicks == p.target.StartTicks {
		p.more = &ev
	}
}

// sample follows the process in the newest snapshot.
func (p *processPage) sample(s *State) []tui.Effect {
	if s.shown == nil {
		return nil
	}
	i := slices.IndexFunc(s.shown.Processes, func(q model.Process) bool {
		return q.PID == p.target.PID && q.StartTicks == p.target.StartTicks
	})
	if p.gone = i < 0; !p.gone {
		p.last, p.seen = row{p: &s.shown.Processes[i]}, s.shown.Time
	}
	return nil
}

func (p *processPage) draw(s *State, area cells.Area) {
	head, body := area.Top(1)
	head.Put(1, 0, fmt.Sprintf("Process %d", p.target.PID), cells.Strong)
	if p.gone {
		head.Put(20, 0, "gone: this is how it was seen last", cells.Bad)
	}
	body = s.drawProcessCharts(body, model.ProcessID{PID: p.target.PID, StartTicks: p.target.StartTicks})
	p.sheet.Draw(&s.hits, body, sheet.Screen(body.W, p.parts(s.shown)...))
}

func (p *processPage) parts(snap *model.Snapshot) []sheet.Part {
	return append([]sheet.Part{
		{Title: "Process", Pairs: facts.Process(snap, p.last.p)}, facts.Memory(snap, p.last.p), mem.Buffers(p.more, nil),
	}, p.environment())
}

// environment has the variables that matter to Tenstorrent's software.
func (p *processPage) environment() sheet.Part {
	out := sheet.Part{Title: "Environment that matters to Tenstorrent"}
	switch {
	case p.more == nil:
		return out
	case p.more.EnvErr != nil:
		out.Notes = []sheet.Note{{Text: words.Escape(p.more.EnvErr.Error())}}
		return out
	}
	for _, kv := range p.more.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && relevant(name) {
			out.Pairs = append(out.Pairs, sheet.Pair{Name: words.Escape(name), Value: sheet.Text(words.Escape(value))})
		}
	}
	if len(out.Pairs) == 0 {
		out.Notes = []sheet.Note{{Text: "none is set"}}
	}
	return out
}

// relevant reports whether a variable matters to Tenstorrent's software.
func relevant(name string) bool {
	for _, prefix := range []string{"TT_", "TTNN_", "ARCH_NAME", "WH_ARCH_YAML", "MESH_DEVICE", "TRACY_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
