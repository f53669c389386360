package replay

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/top"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shown is ttmon top on a recording of a minute.
type shown struct {
	t      *testing.T
	screen *Screen
	player *recording.Player
	grid   *cells.Grid
}

func show(t *testing.T) *shown {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	for s := range 61 {
		now := tuitest.Start.Add(time.Duration(s) * time.Second)
		ok(t, w.Snapshot(now, wire.Append(nil, tuitest.Host(2, s))))
		if s == 40 {
			ok(t, w.Event(model.Event{Time: now, Level: model.Warning, Text: "no room"}))
		}
	}
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	charts := history.New()
	inner, err := top.New(top.Options{Config: config.Default(), Own: charts})
	ok(t, err)
	p := recording.NewPlayer(r)
	s := &shown{t, New(inner, p, charts), p, cells.NewGrid(100, 30)}
	s.screen.Update(tui.Resize{W: 100, H: 30})
	s.key(")")
	s.want("still being searched")
	ok(t, p.Find(r))
	s.screen.setStatus(false, "")
	s.refresh()
	return s
}

// refresh gives the screen what the source says now, as the loop does.
func (s *shown) refresh() {
	s.t.Helper()
	snap, err := s.player.Next(s.t.Context())
	ok(s.t, err)
	s.screen.Update(tui.Sample{Snapshot: snap})
}

func (s *shown) key(keys ...tui.Key) {
	s.t.Helper()
	for _, k := range keys {
		s.screen.Update(k)
	}
	s.refresh()
}

// line is the last line of the screen.
func (s *shown) line() string {
	s.grid.Clear()
	s.screen.Draw(s.grid)
	return s.grid.Row(29)
}

func (s *shown) want(words ...string) {
	s.t.Helper()
	line := s.line()
	for _, w := range words {
		if !strings.Contains(line, w) {
			s.t.Errorf("the line has no %q: %s", w, line)
		}
	}
}

func TestKeys(t *testing.T) {
	s := show(t)
	s.want("‖ 0:00 / 1:00 ×1", "●", "▴", "Step")
	s.key(".", ".", ".")
	s.want("0:03 / 1:00")
	s.key(",")
	s.want("0:02 / 1:00")
	s.key("]", "]")
	s.want("×5")
	s.key("[")
	s.want("×2")
	s.key(")")
	s.want("0:40", "no room")
	s.key(")")
	s.want("no event after this")
	s.key(">")
	s.want("1:00 / 1:00")
	s.key("<")
	s.want("0:00 / 1:00")
	s.key("p")
	s.want("▶")
	if !strings.Contains(s.grid.String(), "n300") {
		t.Error("the screen above is empty")
	}
}

// The keys that the recording has taken are told as what they do.
func TestFooterAndHelp(t *testing.T) {
	s := show(t)
	s.line()
	if footer := s.grid.Row(28); strings.Contains(footer, "Pause") || !strings.Contains(footer, "Quit") {
		t.Errorf("the footer of the screen: %s", footer)
	}
	s.screen.Update(tui.Key("f1"))
	s.line()
	var text strings.Builder
	for y := range 30 {
		text.WriteString(s.grid.Row(y) + "\n")
	}
	for _, want := range []string{"The recording", "play and pause", "the next event"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the help has no %q:\n%s", want, &text)
		}
	}
}

// The mouse moves the slider; a click above it is the screen's.
func TestMouse(t *testing.T) {
	s := show(t)
	s.line()
	middle := s.screen.slider.X + s.screen.slider.W/2
	s.screen.Update(tui.Mouse{X: middle, Y: 29, Action: tui.Press})
	s.refresh()
	if at := s.player.Status().Pos.Sub(tuitest.Start); at < 25*time.Second || at > 35*time.Second {
		t.Errorf("a press in the middle goes to %v", at)
	}
	before := s.player.Status().Pos
	s.screen.Update(tui.Mouse{X: middle, Y: 5, Action: tui.Press})
	if !s.player.Status().Pos.Equal(before) {
		t.Error("a press on the screen moved the slider")
	}
}

// While a filter is typed, keys are letters.
func TestTyping(t *testing.T) {
	s := show(t)
	s.key("/", "d", "r", "a", "m", ">", "1", "G")
	if s.player.Status().Pos.After(tuitest.Start) {
		t.Error("> in a filter moved the recording")
	}
	s.key("enter", ">")
	s.want("1:00 / 1:00")
}
