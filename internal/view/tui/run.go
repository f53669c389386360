package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
)

// Options is how to run a screen.
type Options struct {
	Source   Source
	Interval time.Duration // 0: one second
	ASCII    bool          // draw with ASCII only
	Console  bool          // the terminal is the kernel's own: no braille
	// Do carries out an effect the loop does not know, in a goroutine of its
	// own, and returns the event that tells how it went; nil tells nothing.
	Do func(context.Context, Effect) Event
}

// ErrTerminalLost is returned when the terminal went away.
var ErrTerminalLost = errors.New("the terminal is gone")

// errStuck is returned when the terminal takes no more output and the program
// was told to end.
var errStuck = errors.New("the terminal does not accept output: it may need a reset")

// grace is how long an ended program waits for a terminal that blocks.
const grace = 2 * time.Second

// Open takes over the terminal.
func Open() (tcell.Screen, error) {
	s, err := tcell.NewScreen()
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the terminal (TERM=%s; TERM=xterm-256color fits nearly all): %w", os.Getenv("TERM"), err)
	}
	return s, nil
}

// Run shows app on screen until it quits, the context ends or the terminal
// goes away. The terminal is restored in every case, a panic included. It
// returns nil after Quit and the context's cause when that ended it.
func Run(ctx context.Context, screen tcell.Screen, app App, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan outcome, 1)
	l := newLoop(screen, app, o)
	go func() { done <- guard(func() error { return l.run(ctx, cancel) }, screen.Fini) }()
	<-ctx.Done() // run ends it too
	timeout := time.After(grace)
	select {
	case out := <-done:
		// The terminal is the user's again. The caller closes the source next,
		// and must not do so while a call is still running.
		select {
		case <-l.fed:
		case <-timeout:
		}
		return out.result()
	case <-timeout:
		return errStuck
	}
}

// outcome is how the loop ended.
type outcome struct {
	err   error
	panic any
	stack []byte
}

// guard runs f and then restore, whatever happens in f.
func guard(f func() error, restore func()) (out outcome) {
	defer restore()
	defer func() {
		if p := recover(); p != nil {
			out = outcome{panic: p, stack: debug.Stack()}
		}
	}()
	return outcome{err: f()}
}

func (o outcome) result() error {
	if o.panic != nil {
		// The terminal is back: now the trace can be read.
		panic(fmt.Sprintf("%v\n\n%s", o.panic, o.stack))
	}
	return o.err
}

type loop struct {
	screen  tcell.Screen
	app     App
	o       Options
	paint   *painter
	events  chan Event
	term    chan tcell.Event
	feed    *feeder
	trans   translator
	signals chan os.Signal
	fed     chan struct{} // closed when the source is no longer asked
}

func newLoop(screen tcell.Screen, app App, o Options) *loop {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	l := &loop{
		screen: screen, app: app, o: o, paint: newPainter(screen),
		events: make(chan Event, 16), term: make(chan tcell.Event, 16),
		signals: make(chan os.Signal, 4), fed: make(chan struct{}),
	}
	l.paint.ascii, l.paint.console = o.ASCII, o.Console
	l.feed = &feeder{src: o.Source, interval: o.Interval, change: make(chan time.Duration, 1), out: l.events}
	return l
}

func (l *loop) run(ctx context.Context, cancel context.CancelFunc) error {
	defer cancel()
	signal.Notify(l.signals, syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(l.signals)
	go l.poll(ctx)
	go func() {
		defer close(l.fed)
		l.feed.run(ctx)
	}()
	l.screen.EnablePaste()
	w, h := l.screen.Size()
	if quit := l.handle(ctx, Resize{w, h}); quit {
		return nil
	}
	for {
		if len(l.events) == 0 && len(l.term) == 0 {
			l.paint.paint(l.app)
		}
		var quit bool
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case ev := <-l.events:
			if _, ok := ev.(Sample); ok {
				l.paint.heal(time.Now())
			}
			quit = l.handle(ctx, ev)
		case ev := <-l.term:
			switch e := ev.(type) {
			case nil:
				return ErrTerminalLost
			case *tcell.EventError:
				return fmt.Errorf("%w: %w", ErrTerminalLost, e)
			case *tcell.EventResize:
				l.paint.dirty = true
				w, h := l.screen.Size()
				quit = l.handle(ctx, Resize{w, h})
			default:
				if ev := l.trans.event(e); ev != nil {
					quit = l.handle(ctx, ev)
				}
			}
		case s := <-l.signals:
			if s == syscall.SIGTSTP {
				l.suspend()
			}
			l.paint.dirty = true // continued: another program may have drawn
		}
		if quit {
			return nil
		}
	}
}

// poll passes on the terminal's events until the screen is closed.
func (l *loop) poll(ctx context.Context) {
	for {
		ev := l.screen.PollEvent()
		select {
		case l.term <- ev:
		case <-ctx.Done():
			return
		}
		if ev == nil {
			return
		}
	}
}

// handle gives the app an event and does what it answers.
func (l *loop) handle(ctx context.Context, ev Event) (quit bool) {
	for _, e := range l.app.Update(ev) {
		switch e := e.(type) {
		case Quit:
			return true
		case Suspend:
			l.suspend()
			l.paint.dirty = true
		case Repaint:
			l.paint.dirty = true
		case Refresh:
			l.setInterval(0)
		case SetInterval:
			l.setInterval(time.Duration(e))
		case After:
			time.AfterFunc(e.Wait, func() { l.send(ctx, e.Event) })
		default:
			if l.o.Do == nil {
				panic(fmt.Sprintf("BUG: no handler for %T", e))
			}
			go func() { l.send(ctx, l.o.Do(ctx, e)) }()
		}
	}
	return false
}

func (l *loop) send(ctx context.Context, ev Event) {
	if ev == nil {
		return
	}
	select {
	case l.events <- ev:
	case <-ctx.Done():
	}
}

// setInterval passes a change to the feeder without waiting for it: one that is
// busy asking will see the latest change when it is done.
func (l *loop) setInterval(d time.Duration) {
	for {
		select {
		case l.feed.change <- d:
			return
		default:
		}
		select {
		case old := <-l.feed.change:
			if d == 0 { // asking now is not worth forgetting a new interval for
				d = old
			}
		default:
		}
	}
}
