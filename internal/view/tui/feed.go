package tui

import (
	"context"
	"time"
)

// minRetry is the least time between two questions to a source that does not answer.
const minRetry = time.Second

// feeder asks the source at its interval and passes on what it says.
type feeder struct {
	src      Source
	interval time.Duration
	change   chan time.Duration // a new interval; 0: ask now
	out      chan<- Event
}

func (f *feeder) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	var failed bool
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-f.change:
			if d > 0 {
				f.interval = d
				timer.Reset(f.interval)
				continue
			}
		case <-timer.C:
		}
		if ctx.Err() != nil { // both were ready
			return
		}
		started := time.Now()
		failed = !f.fetch(ctx)
		wait := f.interval
		if failed {
			wait = max(wait, minRetry)
		}
		// Keep the beat, unless it has been missed anyway (a slow source, a
		// suspended machine): then start a new one.
		if next = next.Add(wait); !next.After(started) || next.After(started.Add(wait)) {
			next = started.Add(wait)
		}
		timer.Reset(time.Until(next))
	}
}

// fetch passes on one answer and reports whether it was one.
func (f *feeder) fetch(ctx context.Context) bool {
	snap, err := f.src.Next(ctx)
	var ev Event = Sample{snap}
	if err != nil {
		ev = Lost{Err: err, At: time.Now()}
	}
	select {
	case f.out <- ev:
	case <-ctx.Done():
	}
	return err == nil
}
