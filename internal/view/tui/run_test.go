package tui

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an app that shows a text and hands its events to a test.
type fake struct {
	mu     sync.Mutex
	text   string
	look   Appearance
	events chan Event
	answer func(Event) []Effect
	// drawn counts frames; seen is what it was at the latest event.
	drawn, seen atomic.Int64
}

func newFake() *fake {
	return &fake{events: make(chan Event, 100), answer: func(Event) []Effect { return nil }}
}

func (f *fake) Update(ev Event) []Effect {
	f.seen.Store(f.drawn.Load())
	f.events <- ev
	return f.answer(ev)
}

func (f *fake) Draw(g *cells.Grid) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.Area().Put(0, 0, f.text, cells.Good)
	f.drawn.Add(1)
}

func (f *fake) Appearance() Appearance { return f.look }

func (f *fake) say(text string) {
	f.mu.Lock()
	f.text = text
	f.mu.Unlock()
}

// next is the next event of a type.
func next[T any](t *testing.T, f *fake) T {
	t.Helper()
	for {
		select {
		case ev := <-f.events:
			if v, ok := ev.(T); ok {
				return v
			}
		case <-time.After(time.Minute):
			t.Fatal("the event never came")
		}
	}
}

// counted is a simulated terminal that counts what is sent to it.
type counted struct {
	tcell.SimulationScreen
	shows, puts, finis atomic.Int64
}

func (c *counted) Show() { c.shows.Add(1); c.SimulationScreen.Show() }
func (c *counted) Sync() { c.shows.Add(1); c.SimulationScreen.Sync() }
func (c *counted) Fini() { c.finis.Add(1); c.SimulationScreen.Fini() }
func (c *counted) Put(x, y int, s string, st tcell.Style) (string, int) {
	c.puts.Add(1)
	return c.SimulationScreen.Put(x, y, s, st)
}

func terminal(t *testing.T) *counted {
	t.Helper()
	c := &counted{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	if err := c.Init(); err != nil {
		t.Fatal(err)
	}
	c.SetSize(20, 5)
	return c
}

// still is a source that says the same thing on demand.
type still struct {
	asked atomic.Int64
	err   error
	hold  chan struct{} // if not nil, answers wait for it
}

func (s *still) Next(ctx context.Context) (*model.Snapshot, error) {
	s.asked.Add(1)
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &model.Snapshot{}, s.err
}

// start runs an app; the function returned waits for its end.
func start(ctx context.Context, s tcell.Screen, f App, o Options) func() error {
	done := make(chan error, 1)
	go func() { done <- Run(ctx, s, f, o) }()
	return func() error { return <-done }
}

func TestRun(t *testing.T) {
	screen, app := terminal(t), newFake()
	app.answer = func(ev Event) []Effect {
		if ev == Key("q") {
			return []Effect{Quit{}}
		}
		return nil
	}
	end := start(t.Context(), screen, app, Options{Source: &still{}, Interval: time.Hour})
	if r := next[Resize](t, app); r.W != 20 || r.H != 5 {
		t.Errorf("size %+v", r)
	}
	next[Sample](t, app)
	screen.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
	if err := end(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if screen.finis.Load() != 1 {
		t.Errorf("the terminal was restored %d times", screen.finis.Load())
	}
}

// A screen on which nothing changes costs the terminal nothing.
func TestNothingIsSentWhenNothingChanges(t *testing.T) {
	screen, app := terminal(t), newFake()
	app.say("hello")
	app.answer = func(ev Event) []Effect {
		if ev == Key("q") {
			return []Effect{Quit{}}
		}
		return nil
	}
	end := start(t.Context(), screen, app, Options{Source: &still{}, Interval: time.Hour})
	next[Sample](t, app)
	press := func(r rune) {
		screen.InjectKey(tcell.KeyRune, r, tcell.ModNone)
		next[Key](t, app)
		// The loop draws once no event waits, so a key that came sooner would
		// make it skip this frame.
		for app.drawn.Load() == app.seen.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	press('a')
	press('b') // the frame for 'a' has been sent by now
	shows, puts := screen.shows.Load(), screen.puts.Load()
	for range 20 {
		press('x')
	}
	if s, p := screen.shows.Load()-shows, screen.puts.Load()-puts; s != 0 || p != 0 {
		t.Errorf("%d frames and %d cells for nothing", s, p)
	}
	app.say("hellO")
	press('y')
	press('z')
	if s, p := screen.shows.Load()-shows, screen.puts.Load()-puts; s != 1 || p != 1 {
		t.Errorf("%d frames and %d cells for one changed cell", s, p)
	}
	screen.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
	end()
}

func TestRunEndsWithTheContext(t *testing.T) {
	screen, app := terminal(t), newFake()
	cause := errors.New("told to")
	ctx, cancel := context.WithCancelCause(t.Context())
	end := start(ctx, screen, app, Options{Source: &still{hold: make(chan struct{})}})
	next[Resize](t, app)
	cancel(cause)
	if err := end(); !errors.Is(err, cause) {
		t.Errorf("Run = %v", err)
	}
	if screen.finis.Load() != 1 {
		t.Error("the terminal was not restored")
	}
}

func TestTerminalLost(t *testing.T) {
	screen, app := terminal(t), newFake()
	end := start(t.Context(), screen, app, Options{Source: &still{}, Interval: time.Hour})
	next[Sample](t, app)
	screen.PostEvent(tcell.NewEventError(errors.New("input/output error")))
	if err := end(); !errors.Is(err, ErrTerminalLost) {
		t.Errorf("Run = %v", err)
	}
}

// A bug in a screen must not leave the terminal raw, and must be seen.
func TestPanicRestoresTheTerminal(t *testing.T) {
	for _, where := range []string{"update", "draw"} {
		screen, app := terminal(t), newFake()
		broken := &panicking{fake: app, draw: where == "draw"}
		func() {
			defer func() {
				p := recover()
				if s, ok := p.(string); !ok || !strings.Contains(s, "boom") || !strings.Contains(s, "run_test.go") {
					t.Errorf("%s: panic %v has no trace of its origin", where, p)
				}
			}()
			_ = Run(t.Context(), screen, broken, Options{Source: &still{}, Interval: time.Hour})
			t.Errorf("%s: no panic", where)
		}()
		if screen.finis.Load() != 1 {
			t.Errorf("%s: the terminal was not restored", where)
		}
	}
}

type panicking struct {
	*fake
	draw bool
}

func (p *panicking) Update(ev Event) []Effect {
	if _, ok := ev.(Sample); ok && !p.draw {
		panic("boom")
	}
	return nil
}

func (p *panicking) Draw(*cells.Grid) {
	if p.draw {
		panic("boom")
	}
}

// stuck is a terminal that takes no more output.
type stuck struct {
	*counted
	reached, release chan struct{}
}

func (s *stuck) Sync() {
	close(s.reached)
	<-s.release
}

// A terminal that blocks cannot keep a program from ending when it is told to.
func TestStuckTerminal(t *testing.T) {
	screen := &stuck{terminal(t), make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	app := newFake()
	end := start(ctx, screen, app, Options{Source: &still{}, Interval: time.Hour})
	<-screen.reached
	cancel()
	if err := end(); !errors.Is(err, errStuck) {
		t.Errorf("Run = %v", err)
	}
	close(screen.release) // for the goroutine left behind
	for screen.finis.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
}

type ask struct{ n int }

type answered struct{ n int }

func TestEffects(t *testing.T) {
	screen, app := terminal(t), newFake()
	src := &still{err: errors.New("no such host")}
	app.answer = func(ev Event) []Effect {
		switch ev {
		case Key("d"):
			return []Effect{ask{1}, ask{0}}
		case Key("l"):
			return []Effect{After{time.Millisecond, answered{7}}}
		case Key("r"):
			return []Effect{SetInterval(time.Hour), Refresh{}, Repaint{}}
		case Key("q"):
			return []Effect{Quit{}, ask{3}}
		}
		return nil
	}
	var did atomic.Int64
	end := start(t.Context(), screen, app, Options{Source: src, Interval: time.Hour, Do: func(_ context.Context, e Effect) Event {
		did.Add(1)
		if a := e.(ask); a.n > 0 {
			return answered(a)
		}
		return nil
	}})
	if ev := next[Lost](t, app); ev.Err.Error() != "no such host" || ev.At.IsZero() {
		t.Errorf("Lost %+v", ev)
	}
	screen.InjectKey(tcell.KeyRune, 'd', tcell.ModNone)
	if ev := next[answered](t, app); ev.n != 1 {
		t.Errorf("answer %+v", ev)
	}
	screen.InjectKey(tcell.KeyRune, 'l', tcell.ModNone)
	if ev := next[answered](t, app); ev.n != 7 {
		t.Errorf("later %+v", ev)
	}
	asked, shows := src.asked.Load(), screen.shows.Load()
	screen.InjectKey(tcell.KeyRune, 'r', tcell.ModNone)
	next[Lost](t, app)
	if src.asked.Load() == asked {
		t.Error("Refresh does not ask")
	}
	screen.InjectKey(tcell.KeyRune, 'x', tcell.ModNone)
	next[Key](t, app)
	if screen.shows.Load() == shows {
		t.Error("Repaint does not paint")
	}
	screen.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
	end()
	if did.Load() != 2 {
		t.Errorf("%d effects were carried out, want 2: none after Quit", did.Load())
	}
}

func TestResize(t *testing.T) {
	screen, app := terminal(t), newFake()
	app.answer = func(ev Event) []Effect {
		if ev == (Resize{30, 8}) {
			return []Effect{Quit{}}
		}
		return nil
	}
	end := start(t.Context(), screen, app, Options{Source: &still{}, Interval: time.Hour})
	next[Sample](t, app)
	screen.SetSize(30, 8)
	screen.PostEvent(tcell.NewEventResize(30, 8))
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Now and then every cell is sent again, in case another program wrote over it.
func TestHeal(t *testing.T) {
	screen, app := terminal(t), newFake()
	p := newPainter(screen)
	if !p.paint(app) || p.paint(app) {
		t.Fatal("what does not change is sent again")
	}
	p.heal(p.sent.Add(healEvery - 1))
	if p.paint(app) {
		t.Error("sent again too early")
	}
	p.heal(p.sent.Add(healEvery))
	if !p.paint(app) || p.paint(app) {
		t.Error("not sent again, or all the time")
	}
}
