// Package repeat prints snapshots once, or again and again: on a terminal over
// what was printed before, elsewhere one after the other.
package repeat

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// Job is what a command does: take a snapshot, print it, and perhaps again.
type Job struct {
	Print     func(dst []byte, s *model.Snapshot, o text.Options) []byte
	Out       *console.Output
	Selection selection.Selection
	Interval  time.Duration // 0: once
	Count     int           // how many times; 0: until interrupted
	Sample    time.Duration // between a first sample, which is not shown, and the second
	InPlace   bool          // on a terminal draw over what was drawn before
	Anyway    bool          // print also where there is no device
	Strict    bool          // fail on a warning, not only on a hung or lost device
	Prepare   func(*model.Snapshot) *model.Snapshot
}

// Do runs a job. Interrupting it is how a loop ends, and not an error.
func Do(c *console.Console, from host.Options, j Job) error {
	h, err := host.Open(from)
	if err != nil {
		return err
	}
	defer h.Close()
	o, err := c.TextOptions(j.Out.File)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if j.Interval > 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
		defer stop()
	}
	if j.Sample > 0 {
		if _, err := h.Next(ctx); err != nil {
			return err
		}
		if !Wait(ctx, time.Now().Add(j.Sample)) {
			return nil
		}
	}
	l := loop{Console: c, Job: j, host: h, options: o}
	defer l.leave()
	return l.run(ctx)
}

// loop is a job that runs.
type loop struct {
	*console.Console
	Job
	host    *host.Host
	options text.Options
	screen  bool // drawing in place
	resized chan os.Signal
	buf     []byte
}

func (l *loop) run(ctx context.Context) error {
	next := time.Now()
	for n := 1; ; n++ {
		s, err := l.host.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		part, missing, err := l.shown(s, n == 1)
		if err != nil {
			return err
		}
		if err := l.draw(part); err != nil {
			return err
		}
		if l.Interval == 0 || n == l.Count {
			return l.outcome(part, missing)
		}
		if next = next.Add(l.Interval); next.Before(time.Now()) {
			next = time.Now()
		}
		if err := l.pause(ctx, next, part); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// outcome is the error that tells what was shown last: nothing, or trouble.
func (l *loop) outcome(part *model.Snapshot, missing error) error {
	switch {
	case missing != nil:
		return missing
	case l.Strict:
		return host.Warned(part)
	default:
		return host.Troubled(part)
	}
}

// shown is the part of a snapshot that is printed, and what is missing from it.
// At first a device that is not there is an error; later it may come back.
func (l *loop) shown(s *model.Snapshot, first bool) (part *model.Snapshot, missing, err error) {
	if l.Prepare != nil {
		s = l.Prepare(s)
	}
	missing = l.host.Absence(s)
	if first && missing != nil && !l.Anyway {
		return nil, missing, missing
	}
	part, err = l.Selection.From(s)
	if err != nil && !first {
		return l.Selection.Present(s), missing, nil
	}
	return part, missing, err
}

func (l *loop) draw(s *model.Snapshot) error {
	l.buf = l.Print(l.buf[:0], s, l.options)
	l.enter()
	if l.screen {
		_, rows, _ := console.Size(l.Out.File)
		return l.Out.Write(frame(l.buf, rows))
	}
	return l.Out.Write(l.buf)
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
			o, err := l.TextOptions(l.Out.File)
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

// Wait sleeps until t; false if it was interrupted.
func Wait(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
