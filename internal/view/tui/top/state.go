package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/event"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Options is what a screen starts with.
type Options struct {
	Config config.Config
	// NoKill says why processes cannot be signalled from here; empty: they can.
	NoKill string
	// History is where charts come from; nil: what this run has seen. Another
	// one (a daemon's) is asked instead and may reach further back.
	History history.Reader
	// Own begins what this run has seen with what a daemon saw before; nil:
	// with nothing.
	Own *history.Store
	// Source names where snapshots come from when they do not say it
	// themselves: "ssh lab-4".
	Source string
	// Recorded says that the source can go back and stand still.
	Recorded bool
	// Memory begins with the page of memory, of ttmon mem.
	Memory bool
}

// Charts names the figures whose past is wanted first.
func (o *Options) Charts() (names []string) {
	if !o.Memory {
		return metricNames(o.Config.Top.Charts.Metrics)
	}
	for _, p := range model.Pools() {
		names = append(names, p.String())
	}
	return names
}

// State is the whole screen. Make one with New.
type State struct {
	o      Options
	cfg    config.Config
	gauges *gauge.Set
	own    *history.Store // what this run has seen
	hist   history.Reader // what the charts ask
	detect event.Detector
	log    []model.Event // of this run, oldest first

	around widget.Around
	w, h   int
	live   *model.Snapshot    // the newest
	shown  *model.Snapshot    // what is drawn: older while paused or frozen
	judged *assess.Assessment // of shown
	alone  time.Time          // since when ttmond is gone; zero: it is there, or never was
	lost   *outage            // the source does not answer; nil: it does
	back   *outage            // it did not answer a while ago

	paused bool
	past   time.Time // the moment that is looked back at; zero: none
	frozen bool      // a dialog needs the list to stand still
	focus  pane

	dev   deviceArea
	chart chartArea
	proc  table

	page   page       // nil: the main page
	memory *mem.State // the page of memory, once it was opened
	dialog dialog     // nil: none
	flash  flash

	hits widget.Hits // where things were drawn last, for the mouse
}

// outage is a time without updates from the source.
type outage struct {
	err   string
	since time.Time // of the last snapshot
	until time.Time // of the first after it
	now   time.Time
}

// pane is a part of the main page that can have the focus.
type pane int

const (
	processes pane = iota
	devices
	charts
	numPanes
)

// page replaces the main page: a chart, a process, the log.
type page interface {
	key(*State, tui.Key) []tui.Effect
	draw(*State, cells.Area)
	keys() []binding // those of the page, for the footer and the help
}

// dialog lies over a page and takes all keys.
type dialog interface {
	key(*State, tui.Key) []tui.Effect
	draw(*State, cells.Area)
}

// flash is a message in place of the footer until the next key.
type flash struct {
	text  string
	style cells.Style
}

// maxLog is how many events of a run are kept.
const maxLog = 1000

// New checks the configuration and returns the state before the first snapshot.
func New(o Options) (*State, error) {
	s := &State{o: o, cfg: o.Config.Clone(), gauges: gauge.New(), own: history.New()}
	if o.Own != nil {
		s.own = o.Own
	}
	if s.hist = o.History; s.hist == nil {
		s.hist = s.own
	}
	for _, name := range s.cfg.Top.Charts.Metrics {
		if _, err := s.parseChart(name); err != nil {
			return nil, fmt.Errorf("top.charts.metrics: %w", err)
		}
	}
	if err := s.proc.setup(&s.cfg.Top.Processes); err != nil {
		return nil, err
	}
	if o.Memory {
		s.startMemory()
		s.page = memoryPage{s.memory}
	}
	return s, nil
}

// Appearance implements tui.App.
func (s *State) Appearance() tui.Appearance {
	return tui.Appearance{Theme: s.cfg.Display.Theme, Mouse: s.cfg.Display.Mouse, Round: s.cfg.Display.Corners == "round"}
}

// Update implements tui.App.
func (s *State) Update(ev tui.Event) []tui.Effect {
	switch ev := ev.(type) {
	case tui.Resize:
		s.w, s.h = ev.W, ev.H
	case tui.Sample:
		return s.sample(ev.Snapshot)
	case tui.Jumped:
		s.jump(ev.At)
	case tui.Lost:
		s.lose(ev)
	case tui.Key:
		s.flash = flash{}
		return append(s.key(ev), s.wants()...)
	case tui.Paste:
		if t, ok := s.dialog.(interface{ paste(*State, string) }); ok {
			t.paste(s, string(ev))
		}
	case tui.Mouse:
		return s.mouse(ev)
	case act.Killed:
		s.killed(ev)
	case act.Saved:
		s.saved(ev)
	case act.Loaded:
		s.showPast(ev)
	case act.Mapped:
		if s.memory != nil {
			s.memory.Mapped(ev)
		}
	case act.Inspected:
		if p, ok := s.page.(interface{ inspected(act.Inspected) }); ok {
			p.inspected(ev)
		}
	}
	return nil
}

// sample takes in a snapshot. History and log grow even while paused.
func (s *State) sample(snap *model.Snapshot) []tui.Effect {
	switch {
	case snap.Source == model.Daemon:
		s.alone = time.Time{}
	case s.live != nil && s.live.Source == model.Daemon:
		s.alone = s.live.Time
	}
	s.live = snap
	s.gauges.Record(s.own, snap)
	s.note(s.detect.Next(snap)...)
	if s.lost != nil {
		s.lost.until = snap.Time
		s.back, s.lost = s.lost, nil
		s.note(model.Event{
			Time: snap.Time, Kind: model.EventSource, Level: words.Info, Short: "source back",
			Text: fmt.Sprintf("the source answers again after %s", words.Span(s.back.until.Sub(s.back.since))),
		})
	}
	if s.memory != nil {
		s.memory.Sample(snap)
	}
	if !s.paused && !s.frozen {
		s.show(snap)
	}
	if p, ok := s.page.(interface{ sample(*State) []tui.Effect }); ok {
		return p.sample(s)
	}
	return s.wants()
}

// show makes a snapshot the one that is drawn.
func (s *State) show(snap *model.Snapshot) {
	s.shown, s.judged = snap, assess.Of(snap)
	s.proc.build(s)
	s.dev.ensureSelection(s)
	if s.memory != nil {
		s.memory.Show(snap, !s.past.IsZero())
	}
}

func (s *State) note(events ...model.Event) {
	s.log = append(s.log, events...)
	if n := len(s.log) - maxLog; n > 0 {
		s.log = append([]model.Event(nil), s.log[n:]...)
	}
}

// jump forgets what does not lead to the samples that follow.
func (s *State) jump(at time.Time) {
	s.detect, s.paused, s.past = event.Detector{}, false, time.Time{}
	s.log = slices.DeleteFunc(s.log, func(e model.Event) bool { return e.Time.After(at) })
	if s.memory != nil {
		s.memory.Forget()
	}
}

// Typing reports whether a dialog receives the keys.
func (s *State) Typing() bool { return s.dialog != nil }

// lose notes that the source did not answer.
func (s *State) lose(ev tui.Lost) {
	if s.lost == nil {
		s.lost = &outage{since: ev.At}
		if s.live != nil {
			s.lost.since = s.live.Time
		}
		s.back = nil
		s.note(model.Event{
			Time: ev.At, Kind: model.EventSource, Level: words.Critical, Short: "source gone",
			Text: "the source does not answer: " + words.Escape(ev.Err.Error()),
		})
	}
	s.lost.err, s.lost.now = words.Escape(ev.Err.Error()), ev.At
}

// thaw lets the screen follow the newest snapshot again.
func (s *State) thaw() {
	s.frozen = false
	if !s.paused && s.live != nil {
		s.show(s.live)
	}
}

// showMessage shows a message until the next key.
func (s *State) showMessage(style cells.Style, format string, args ...any) {
	s.flash = flash{fmt.Sprintf(format, args...), style}
}

// noKill is why nothing can be signalled; empty: it can.
func (s *State) noKill() string {
	if s.cfg.Top.ReadOnly {
		return "read-only: signals are switched off"
	}
	return s.o.NoKill
}
