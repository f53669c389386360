// Package replay shows a recording in the screens of the present: it puts a
// line with a slider below one of them (top, mem), and moves the source.
//
// It stands between a screen, which takes a recording's snapshots for any
// others, and recording.Player, which gives them.
package replay

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Screen is a screen of the present with a slider below it.
type Screen struct {
	tui.App
	player *recording.Player
	// charts are those of the screen: after a jump they are refilled.
	charts *history.Store
	gauges *gauge.Set

	w, h   int
	slider cells.Area
	saying string
	wrong  bool
}

// How much of the time before a moment the charts show, and in how many points.
const (
	chartSpan   = 10 * time.Minute
	chartPoints = 100
)

// New wraps a screen. charts is the store that the screen draws from.
func New(inner tui.App, p *recording.Player, charts *history.Store) *Screen {
	s := &Screen{App: inner, player: p, charts: charts, gauges: gauge.New()}
	if inner, ok := inner.(interface{ Surround(widget.Around) }); ok {
		inner.Surround(widget.Around{Title: "The recording", Keys: s.Keys()})
	}
	s.fill()
	return s
}

// fill fills the charts with the time before the position.
func (s *Screen) fill() {
	if s.charts == nil {
		return
	}
	*s.charts = *history.New()
	for _, snap := range s.player.Before(chartSpan, chartPoints) {
		s.gauges.Record(s.charts, snap)
	}
}

// speeds that can be chosen.
var speeds = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300}

// Keys are what keys do here; the screen has all others.
func (s *Screen) Keys() []widget.Binding {
	far := func(d time.Duration) func() []tui.Effect {
		return func() []tui.Effect { return s.jump(func() { s.player.Go(s.player.Status().Pos.Add(d)) }) }
	}
	return []widget.Binding{
		{Keys: []tui.Key{"p"}, Foot: "Play", Help: "play and pause", Do: s.toggle},
		{Keys: []tui.Key{"."}, Foot: "Step", Help: "the next snapshot", Do: func() []tui.Effect { return s.step(true) }},
		{Keys: []tui.Key{","}, Help: "the snapshot before", Do: func() []tui.Effect { return s.step(false) }},
		{Keys: []tui.Key{"]"}, Foot: "Faster", Help: "play faster", Do: func() []tui.Effect { return s.faster(1) }},
		{Keys: []tui.Key{"["}, Foot: "Slower", Help: "play slower", Do: func() []tui.Effect { return s.faster(-1) }},
		{Keys: []tui.Key{")"}, Foot: "Event", Help: "the next event", Do: func() []tui.Effect { return s.event(true) }},
		{Keys: []tui.Key{"("}, Help: "the event before", Do: func() []tui.Effect { return s.event(false) }},
		{Keys: []tui.Key{">"}, Help: "a minute later", Do: far(time.Minute)},
		{Keys: []tui.Key{"<"}, Help: "a minute earlier", Do: far(-time.Minute)},
		{Keys: []tui.Key{"}"}, Help: "half an hour later", Do: far(30 * time.Minute)},
		{Keys: []tui.Key{"{"}, Help: "half an hour earlier", Do: far(-30 * time.Minute)},
	}
}

// Update implements tui.App.
func (s *Screen) Update(ev tui.Event) []tui.Effect {
	switch e := ev.(type) {
	case tui.Resize:
		s.w, s.h = e.W, e.H
		return s.App.Update(tui.Resize{W: e.W, H: max(e.H-1, 0)})
	case tui.Key:
		if t, ok := s.App.(interface{ Typing() bool }); ok && t.Typing() {
			break
		}
		if b := widget.Find(s.Keys(), e); b != nil {
			s.saying = ""
			return b.Do()
		}
	case tui.Mouse:
		if e.Y == s.h-1 {
			return s.press(e)
		}
	}
	return s.App.Update(ev)
}

func (s *Screen) toggle() []tui.Effect {
	st := s.player.Status()
	if !st.Playing && !st.Pos.Before(st.Last) {
		s.player.Go(st.First)
		s.player.Play(true)
		return s.arrived()
	}
	s.player.Play(!st.Playing)
	return []tui.Effect{tui.Refresh{}}
}

// jump moves and tells the screen.
func (s *Screen) jump(move func()) []tui.Effect {
	move()
	return s.arrived()
}

func (s *Screen) arrived() []tui.Effect {
	s.fill()
	return append(s.App.Update(tui.Jumped{At: s.player.Status().Pos}), tui.Refresh{})
}

func (s *Screen) step(forward bool) []tui.Effect {
	if err := s.player.Step(forward); err != nil {
		s.setStatus(true, err.Error())
		return nil
	}
	if forward {
		return []tui.Effect{tui.Refresh{}}
	}
	return s.arrived()
}

func (s *Screen) faster(by int) []tui.Effect {
	now, n := s.player.Status().Speed, 0
	for i, x := range speeds {
		if x <= now {
			n = i
		}
	}
	x := speeds[min(max(n+by, 0), len(speeds)-1)]
	s.player.SetSpeed(x)
	return []tui.Effect{tui.SetInterval(interval(x)), tui.Refresh{}}
}

// interval is how often a screen is drawn at a speed: four times a second at
// most, and slow motion as slow as it is.
func interval(speed float64) time.Duration {
	return min(max(time.Duration(float64(time.Second)/speed), 250*time.Millisecond), time.Second)
}

func (s *Screen) event(forward bool) []tui.Effect {
	m, ok := s.player.Jump(forward)
	if !ok && !s.player.Status().Found {
		s.setStatus(false, "the recording is still being searched for events")
		return nil
	}
	if !ok {
		s.setStatus(false, map[bool]string{true: "no event after this", false: "no event before this"}[forward])
		return nil
	}
	s.player.Play(false)
	s.setStatus(false, m.Event.Text)
	return s.arrived()
}

func (s *Screen) setStatus(wrong bool, text string) { s.saying, s.wrong = words.Escape(text), wrong }

// press moves to where the slider was pressed.
func (s *Screen) press(m tui.Mouse) []tui.Effect {
	if m.Action != tui.Press && m.Action != tui.Drag || s.slider.W < 2 || m.X < s.slider.X || m.X >= s.slider.X+s.slider.W {
		return nil
	}
	st := s.player.Status()
	share := float64(m.X-s.slider.X) / float64(s.slider.W-1)
	return s.jump(func() { s.player.Go(st.First.Add(time.Duration(share * float64(st.Last.Sub(st.First))))) })
}

// Draw implements tui.App.
func (s *Screen) Draw(g *cells.Grid) {
	if s.h < 2 {
		s.App.Draw(g)
		return
	}
	upper := cells.NewGrid(g.W, g.H-1)
	s.App.Draw(upper)
	g.Area().Copy(upper)
	g.CursorX, g.CursorY = upper.CursorX, upper.CursorY
	_, row := g.Area().Bottom(1)
	s.drawLine(row)
}

func (s *Screen) drawLine(row cells.Area) {
	st := s.player.Status()
	row.Fill(' ', cells.KeyText)
	mark := "▶"
	if !st.Playing {
		mark = "‖"
	}
	x := row.Put(0, 0, fmt.Sprintf(" %s %s / %s ×%g ", mark, clock(st.Pos.Sub(st.First)), clock(st.Last.Sub(st.First)), st.Speed), cells.Key)
	if s.saying != "" {
		style := cells.KeyText
		if s.wrong {
			style = cells.Warn
		}
		row.Put(x+1, 0, words.Truncate(s.saying, row.W-x-1), style)
		s.slider = cells.Area{}
		return
	}
	keys := 0
	if row.W > 72 {
		keys = 42
	}
	s.slider = row.Sub(x+1, 0, row.W-x-2-keys, 1)
	s.drawSlider(st)
	if keys > 0 {
		var h widget.Hits
		widget.Footer(&h, row.Sub(row.W-keys, 0, keys, 1), s.Keys())
	}
}

func (s *Screen) drawSlider(st recording.Status) {
	w := s.slider.W
	if w < 2 {
		return
	}
	s.slider.HLine(0, 0, w, cells.KeyText)
	span := st.Last.Sub(st.First)
	at := func(t time.Time) int {
		if span <= 0 {
			return w - 1
		}
		return min(max(int(float64(t.Sub(st.First))/float64(span)*float64(w-1)+0.5), 0), w-1)
	}
	for _, m := range s.player.Marks() {
		s.slider.Set(at(m.Time), 0, '▴', style(m))
	}
	s.slider.Set(at(st.Pos), 0, '●', cells.Key)
}

func style(m recording.Mark) cells.Style {
	if m.Event.Level < model.Warning {
		return cells.KeyText
	}
	return cells.Of(m.Event.Level)
}

// clock is a time since the beginning: 1:02:03, 12:31.
func clock(d time.Duration) string {
	sec := int(d.Seconds())
	if sec >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", sec/3600, sec/60%60, sec%60)
	}
	return fmt.Sprintf("%d:%02d", sec/60, sec%60)
}
