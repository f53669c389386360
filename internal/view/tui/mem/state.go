package mem

import (
	"time"

	"github.com/ttmon/ttmon/internal/config"
	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/words"
)

// Options is what the screens start with.
type Options struct {
	Config config.Config
	Only   []string // devices by any of their names; empty: all
	// History is where the chart comes from. Nil: the screens keep their own;
	// given: its owner fills it.
	History history.Reader
	// Own begins what this run has seen with what a daemon saw before.
	Own    *history.Store
	Source string // as in ttmon top
	// Recorded says that the source can go back and stand still: a map is of the
	// moment that is shown.
	Recorded bool
}

// State is the whole screen. Make one with New.
type State struct {
	o      Options
	hist   history.Reader
	own    *history.Store // hist, if this screen fills it
	gauges *gauge.Set
	trend  trend

	live, shown *model.Snapshot
	lost        string // the source does not answer: why
	lostFor     time.Duration
	paused      bool
	past        past
	around      widget.Around

	depth  depth
	chip   chipKey // the selected chip
	list   widget.List
	who    widget.List
	pool   model.Pool // in the chart, and what holders are sorted by
	span   time.Duration
	zoomed bool // the user chose the span
	holder holderPage
	banks  banks
	help   *widget.Help
	hits   widget.Hits
}

// depth is how far the user went in.
type depth int

const (
	overview  depth = iota // all chips
	oneChip                // who holds one
	oneHolder              // what one process holds of it
)

// New returns the state before the first snapshot.
func New(o Options) *State {
	s := &State{o: o, hist: o.History, span: time.Duration(o.Config.Mem.Span)}
	if s.hist == nil {
		s.own, s.gauges = o.Own, gauge.New()
		if s.own == nil {
			s.own = history.New()
		}
		s.hist = s.own
	}
	return s
}

// Appearance implements tui.App.
func (s *State) Appearance() tui.Appearance {
	return tui.Appearance{Theme: s.o.Config.Display.Theme, Mouse: s.o.Config.Display.Mouse, Round: s.o.Config.Display.Corners == "round"}
}

// Update implements tui.App.
func (s *State) Update(ev tui.Event) []tui.Effect {
	switch ev := ev.(type) {
	case tui.Sample:
		s.lost = ""
		s.Sample(ev.Snapshot)
		return s.Wants()
	case tui.Jumped:
		s.trend, s.past, s.paused = trend{}, past{}, false
	case tui.Lost:
		s.lost = words.Escape(ev.Err.Error())
		if s.live != nil {
			s.lostFor = ev.At.Sub(s.live.Time)
		}
	case tui.Key:
		return append(s.Key(ev), s.Wants()...)
	case tui.Mouse:
		if ev.Action != tui.Release {
			return s.hits.Send(ev)
		}
	case act.Inspected:
		s.Inspected(ev)
	case act.Mapped:
		s.Mapped(ev)
	case act.Loaded:
		s.showPast(ev)
	}
	return nil
}

// Sample takes in a snapshot.
func (s *State) Sample(snap *model.Snapshot) {
	first := s.live == nil
	s.live = snap
	if s.own != nil {
		s.gauges.Record(s.own, snap)
	}
	s.nowTrend().addSample(snap)
	if !s.paused {
		s.shown = snap
	}
	s.clampSelection()
	if first && len(s.chips()) == 1 && s.depth == overview {
		s.depth = oneChip // nothing to choose from
	}
}

// Open goes straight to a device.
func (s *State) Open(bus string) {
	s.chip = chipKey{bus: bus}
	s.depth = overview
	n := 0
	for i, c := range s.chips() {
		if c.dev.BusID == bus {
			if n == 0 {
				s.list.Sel = i
			}
			n++
		}
	}
	if n == 1 {
		s.depth = oneChip
	}
	s.clampSelection()
}

// chips lists the chips shown.
func (s *State) chips() []chip {
	if s.shown == nil {
		return nil
	}
	return chipsOf(s.shown, s.o.Only)
}

// selected is the selected chip; ok is false when there is none at all.
func (s *State) selected() (c chip, ok bool) {
	list := s.chips()
	for _, c := range list {
		if c.key() == s.chip {
			return c, true
		}
	}
	if s.depth == overview && len(list) > 0 {
		return list[min(s.list.Sel, len(list)-1)], true
	}
	return chip{}, false
}

// clampSelection keeps selections on things that exist.
func (s *State) clampSelection() {
	list := s.chips()
	s.list.N = len(list)
	s.list.Clamp()
	for i, c := range list {
		if c.key() == s.chip {
			s.list.Sel = i
			return
		}
	}
	if s.depth == overview && len(list) > 0 {
		s.chip = list[s.list.Sel].key()
	}
}

// Draw implements tui.App.
func (s *State) Draw(g *cells.Grid) {
	s.hits.Reset()
	title, rest := g.Area().Top(1)
	rest, foot := rest.Bottom(1)
	s.drawTitle(title)
	s.DrawIn(&s.hits, rest)
	widget.Footer(&s.hits, foot, s.footer())
	if s.help != nil {
		s.hits.Reset()
		s.help.Draw(&s.hits, g.Area(), s.helpLines(), func() { s.help = nil })
	}
}

// DrawIn draws the screen without title and footer.
func (s *State) DrawIn(h *widget.Hits, area cells.Area) {
	switch {
	case s.shown == nil && s.lost != "":
		area.Put(1, 0, words.Truncate("no data: "+s.lost, area.W-2), cells.Bad)
	case s.shown == nil:
		area.Put(1, 0, "Waiting for the first sample …", cells.Strong)
	case len(s.chips()) == 0:
		area.Put(1, 0, "There is no device to show.", cells.Strong)
	case s.depth == overview:
		s.drawOverview(h, area)
	default:
		c, ok := s.selected()
		if !ok {
			area.Put(1, 0, "Device "+words.Escape(s.chip.bus)+" is gone.", cells.Bad)
			return
		}
		if s.depth == oneHolder {
			s.holder.draw(s, h, area, c)
		} else {
			s.drawChip(h, area, c)
		}
	}
}

func (s *State) drawTitle(row cells.Area) {
	x := row.W
	for _, b := range s.badges() {
		row.PutRight(x, 0, b.text, b.style)
		x -= words.Width(b.text) + 1
	}
	left := row.Sub(0, 0, max(x, 0), 1)
	if s.shown == nil {
		left.Put(1, 0, "ttmon mem", cells.Strong)
		return
	}
	at := left.Put(1, 0, words.Escape(s.shown.Host.Name), cells.Strong) + 2
	if m := s.trend.mark; m != nil {
		at = left.Put(at, 0, "since the mark at "+m.at.Local().Format("15:04:05"), cells.Label) + 2
	}
	if s.past.why != "" {
		at = left.Put(at, 0, words.Truncate(s.past.why, left.W-at), cells.Warn) + 2
	}
	if s.lost != "" {
		text := "no update for " + words.Span(s.lostFor) + ": " + s.lost + ". Retrying; the data shown is old."
		left.Put(at, 0, words.Truncate(text, left.W-at), cells.Bad)
	}
}

type badge struct {
	text  string
	style cells.Style
}

// badges stand at the right end of the title, the first outermost.
func (s *State) badges() []badge {
	out := []badge{{s.o.Config.Mem.Interval.String() + " ", cells.Faint}}
	if s.o.Source != "" {
		out = append(out, badge{words.Escape(s.o.Source), cells.Faint})
	} else if s.shown != nil && s.shown.Source == model.Daemon {
		out = append(out, badge{"ttmond", cells.Faint})
	}
	if !s.past.at.IsZero() && s.shown != nil {
		out = append(out, badge{" PAST " + s.shown.Time.Local().Format("Jan 2 15:04:05") + " ", cells.Banner})
	} else if s.paused {
		out = append(out, badge{" PAUSED ", cells.Banner})
	}
	if s.shown != nil && s.shown.Simulated {
		out = append(out, badge{" SIMULATED ", cells.Banner})
	}
	return out
}
