// Package fleet is the screen of `ttmon fleet`: many hosts with their chips as
// cells, the worst first, and one host chip by chip.
//
// It is a screen of view/tui: a pure update and a drawing. What it shows comes
// from an engine that speaks PromQL and adds up: one line a host, and single
// chips only of the hosts that are in view.
package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Effects of the screen, and what answers them.
type (
	// Fetch asks for all hosts, one line each.
	Fetch struct{}
	// Answer has them, or why not.
	Answer struct {
		Fleet *sums.Fleet
		At    time.Time
		Err   error
	}
	// FetchCells asks for the chips of some hosts.
	FetchCells struct{ Hosts []string }
	// Cells has them by host, or why not.
	Cells struct {
		Chips map[string][]sums.Chip
		Err   error
	}
	// FetchHost asks for one host, chip by chip.
	FetchHost struct{ Name string }
	// Host has it, or why not.
	Host struct {
		Name string
		Host *sums.Host
		Err  error
	}
)

// Options is what the screen starts with.
type Options struct {
	Theme    string
	Mouse    bool
	Round    bool
	Engine   string // who is asked, without secrets
	Interval time.Duration
	Host     string // open this one first; "": all
}

// Screen is the state.
type Screen struct {
	widget.Filtered
	o      Options
	fleet  *sums.Fleet
	at     time.Time
	err    string // why there is no update
	chips  map[string][]sums.Chip
	asking struct{ fleet, cells, host bool }

	order  order
	bad    bool   // only hosts in trouble
	filter string // part of a name
	hosts  []sums.Host
	list   widget.List
	name   string // of the selected host

	open string // the host that is shown alone; "": none
	one  *sums.Host
	rows widget.List // its chips

	w, h int
}

// New returns a screen that has not asked yet.
func New(o Options) *Screen { return &Screen{o: o, open: o.Host, chips: map[string][]sums.Chip{}} }

// Appearance implements tui.App.
func (s *Screen) Appearance() tui.Appearance {
	return tui.Appearance{Theme: s.o.Theme, Mouse: s.o.Mouse, Round: s.o.Round}
}

// Update implements tui.App.
func (s *Screen) Update(ev tui.Event) []tui.Effect {
	var out []tui.Effect
	switch ev := ev.(type) {
	case tui.Resize:
		s.w, s.h = ev.W, ev.H
	case tui.Sample, tui.Lost: // the beat
		out = s.refresh()
	case Answer:
		s.answered(ev)
	case Cells:
		s.asking.cells = false
		s.failed(ev.Err)
		for name, list := range ev.Chips {
			s.chips[name] = list
		}
	case Host:
		s.asking.host = false
		if ev.Name == s.open {
			s.failed(ev.Err)
			if ev.Err == nil {
				s.one = ev.Host
			}
		}
	case tui.Key:
		out = s.key(ev)
	case tui.Paste:
		s.Paste(string(ev), s.setFilter)
	case tui.Mouse:
		if ev.Action != tui.Release {
			out = s.Hits.Send(ev)
		}
	}
	return append(out, s.want()...)
}

// refresh requests an update of what is shown.
func (s *Screen) refresh() (out []tui.Effect) {
	if !s.asking.fleet {
		s.asking.fleet = true
		out = append(out, Fetch{})
	}
	if s.open != "" && !s.asking.host {
		s.asking.host = true
		out = append(out, FetchHost{s.open})
	}
	return out
}

func (s *Screen) failed(err error) {
	if err != nil {
		s.err = words.Escape(err.Error())
	}
}

// answered takes in all hosts. The chips that were known are of another time:
// those in view are asked for again.
func (s *Screen) answered(ev Answer) {
	s.asking.fleet = false
	s.failed(ev.Err)
	if ev.Err != nil {
		return
	}
	s.err, s.fleet, s.at = "", ev.Fleet, ev.At
	s.arrange()
	for _, h := range s.inView() {
		delete(s.chips, h.Name)
	}
}

// want requests the chips of hosts in view that were not requested yet.
func (s *Screen) want() []tui.Effect {
	if s.asking.cells || s.open != "" {
		return nil
	}
	var names []string
	for _, h := range s.inView() {
		if _, known := s.chips[h.Name]; !known && h.Name != "" {
			names = append(names, h.Name)
		}
	}
	if names == nil {
		return nil
	}
	s.asking.cells = true
	return []tui.Effect{FetchCells{names}}
}

// inView are the hosts that are drawn, and a screen more, for scrolling.
func (s *Screen) inView() []sums.Host {
	room := max(s.h-s.head()-1, 1)
	from := max(s.list.Sel-room, 0)
	to := min(max(s.list.Sel+room, room), len(s.hosts))
	return s.hosts[min(from, to):to]
}

// arrange filters and sorts, and keeps the selection on its host.
func (s *Screen) arrange() {
	s.hosts = s.hosts[:0]
	if s.fleet != nil {
		for _, h := range s.fleet.Hosts {
			if (!s.bad || h.Level() > model.Fine) && strings.Contains(strings.ToLower(h.Name), strings.ToLower(s.filter)) {
				s.hosts = append(s.hosts, h)
			}
		}
	}
	sums.Sort(s.hosts)
	if less := orders[s.order].compare; less != nil {
		slices.SortStableFunc(s.hosts, less)
	}
	s.list.N = len(s.hosts)
	if i := slices.IndexFunc(s.hosts, func(h sums.Host) bool { return h.Name == s.name }); i >= 0 && s.name != "" {
		s.list.Sel = i
	}
	s.list.Clamp()
	s.remember()
}

// remember notes which host is selected. At the top none is: the worst host
// stays in view.
func (s *Screen) remember() {
	s.name = ""
	if s.list.Sel > 0 && s.list.Sel < len(s.hosts) {
		s.name = s.hosts[s.list.Sel].Name
	}
}

func (s *Screen) setFilter(t string) {
	s.filter = t
	s.list.Sel = 0
	s.arrange()
}

// enter opens the selected host.
func (s *Screen) enter() []tui.Effect {
	if s.open != "" || s.list.Sel >= len(s.hosts) {
		return nil
	}
	s.open, s.one, s.rows = s.hosts[s.list.Sel].Name, nil, widget.List{}
	s.asking.host = true
	return []tui.Effect{FetchHost{s.open}}
}

// back goes out by one; false when it is outermost already.
func (s *Screen) back() bool {
	switch {
	case s.open != "":
		s.open, s.one, s.asking.host = "", nil, false
	case s.filter != "" || s.bad:
		s.bad = false
		s.setFilter("")
	default:
		return false
	}
	return true
}

// Draw implements tui.App.
func (s *Screen) Draw(g *cells.Grid) {
	body := s.drawFleet
	if s.open != "" {
		body = s.drawHost
	}
	s.Filtered.Draw(g, body, s.keys(), s.helpLines())
}
