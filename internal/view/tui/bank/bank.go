// Package bank is the screen of `ttmon mem -p`: the allocators of one process,
// with a map of each bank, redrawn with every sample.
//
// It is a screen of view/tui: a pure update and a drawing. What it shows is
// made by view/bankmap.
package bank

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Effects of the screen, and what answers them.
type (
	// Fetch asks for the allocators.
	Fetch struct{}
	// Answer has them, or why not.
	Answer struct {
		Process *blocks.Process
		Options bankmap.Options // how its chips and itself are called
		At      time.Time
		Err     error
	}
)

// Screen is the state.
type Screen struct {
	theme  string
	last   Answer
	asking bool
	top    int // first line that is shown
	height int
	rows   int
}

// New returns a screen that has not asked yet.
func New(theme string) *Screen { return &Screen{theme: theme} }

// Appearance implements tui.App.
func (s *Screen) Appearance() tui.Appearance { return tui.Appearance{Theme: s.theme} }

// Update implements tui.App.
func (s *Screen) Update(e tui.Event) []tui.Effect {
	switch e := e.(type) {
	case tui.Resize:
		s.height = e.H
	case tui.Sample, tui.Lost:
		if !s.asking {
			s.asking = true
			return []tui.Effect{Fetch{}}
		}
	case Answer:
		s.asking = false
		if e.Err != nil && s.last.Process != nil {
			// What was known last, and when, with the reason why there is no more.
			e.Process, e.Options, e.At = s.last.Process, s.last.Options, s.last.At
		}
		s.last = e
	case tui.Key:
		return s.key(e)
	}
	return nil
}

func (s *Screen) key(k tui.Key) []tui.Effect {
	page := max(s.height-2, 1)
	switch k {
	case "q", "esc", "f10", "ctrl-c":
		return []tui.Effect{tui.Quit{}}
	case "ctrl-z":
		return []tui.Effect{tui.Suspend{}}
	case "ctrl-l":
		return []tui.Effect{tui.Repaint{}}
	case "r", "f5":
		return []tui.Effect{tui.Refresh{}}
	case "up", "k":
		s.top--
	case "down", "j":
		s.top++
	case "pgup":
		s.top -= page
	case "pgdn", " ":
		s.top += page
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = s.rows
	}
	s.top = max(min(s.top, s.rows-page), 0)
	return nil
}

// Draw implements tui.App.
func (s *Screen) Draw(g *cells.Grid) {
	body, foot := g.Area().Bottom(1)
	switch {
	case s.last.Process == nil && s.last.Err != nil:
		body.Put(1, 0, s.last.Err.Error(), cells.Bad)
	case s.last.Process == nil:
		body.Put(1, 0, "asking ttmond …", cells.Faint)
	default:
		o := s.last.Options
		o.Width, o.Now = max(body.W-2, 20), s.last.At
		drawn := bankmap.Lines(s.last.Process, o)
		s.rows = len(drawn)
		for y, line := range drawn[min(s.top, len(drawn)):] {
			line.Put(body, 1, y)
		}
	}
	x := 1
	for _, k := range [...][2]string{{"↑↓", "Scroll"}, {"r", "Now"}, {"q", "Quit"}} {
		x = foot.Put(x, 0, k[0], cells.Key) + 1
		x = foot.Put(x, 0, k[1], cells.KeyText) + 2
	}
	if s.last.Err != nil && s.last.Process != nil {
		foot.Put(x, 0, fmt.Sprintf("as of %s: %v", s.last.At.Format("15:04:05"), s.last.Err), cells.Warn)
	}
}
