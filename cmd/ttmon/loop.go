package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// job is what a command does: collect, print, and perhaps again.
type job struct {
	print     func(dst []byte, s *model.Snapshot, o text.Options) []byte
	out       *output
	selection selection
	interval  time.Duration // 0: once
	count     int           // how many times; 0: until interrupted
	sample    time.Duration // between a first sample, which is not shown, and the second
	inPlace   bool          // on a terminal draw over what was drawn before
	anyway    bool          // print also where there is no device
	prepare   func(*model.Snapshot) *model.Snapshot
}

// do runs a job. Interrupting it is how a loop ends, and not an error.
func (a *app) do(j job) error {
	h, err := a.openHost()
	if err != nil {
		return err
	}
	defer h.Close()
	o, err := a.textOptions(j.out.file)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if j.interval > 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
		defer stop()
	}
	if j.sample > 0 {
		if _, err := h.Next(ctx); err != nil {
			return err
		}
		if !wait(ctx, time.Now().Add(j.sample)) {
			return nil
		}
	}
	l := loop{app: a, job: j, options: o}
	defer l.leave()
	return l.run(ctx, h)
}

// loop is a job on its way.
type loop struct {
	*app
	job
	options text.Options
	screen  bool // drawing in place
	resized chan os.Signal
	buf     []byte
}

func (l *loop) run(ctx context.Context, h *host) error {
	next := time.Now()
	for n := 1; ; n++ {
		s, err := h.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if l.prepare != nil {
			s = l.prepare(s)
		}
		missing := absence(s)
		if n == 1 && missing != nil && !l.anyway {
			return missing
		}
		part, err := l.selection.from(s)
		if err != nil && n == 1 {
			return err
		}
		if err != nil { // it was there and is gone; it may come back
			part = l.selection.present(s)
		}
		if err := l.draw(part); err != nil {
			return err
		}
		if l.interval == 0 || n == l.count {
			if missing != nil {
				return missing
			}
			return troubled(part)
		}
		if next = next.Add(l.interval); next.Before(time.Now()) {
			next = time.Now()
		}
		if err := l.pause(ctx, next, part); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (l *loop) draw(s *model.Snapshot) error {
	l.buf = l.print(l.buf[:0], s, l.options)
	l.enter()
	if l.screen {
		_, rows, _ := size(l.out.file)
		return l.out.write(frame(l.buf, rows))
	}
	return l.out.write(l.buf)
}

// pause waits for the next round; a terminal that changes its size is drawn
// again at once.
func (l *loop) pause(ctx context.Context, until time.Time, s *model.Snapshot) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		case <-l.resized:
			o, err := l.textOptions(l.out.file)
			if err != nil {
				return err
			}
			l.options = o
			if err := l.draw(s); err != nil {
				return err
			}
		}
	}
}

// wait sleeps until t; false if it was interrupted.
func wait(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
