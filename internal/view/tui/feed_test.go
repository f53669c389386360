package tui

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// slow answers after a while, and counts.
type slow struct {
	takes time.Duration
	fail  bool
	at    []time.Time
}

func (s *slow) Next(ctx context.Context) (*model.Snapshot, error) {
	s.at = append(s.at, time.Now())
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fail {
		return nil, errors.New("fails")
	}
	return &model.Snapshot{}, nil
}

// feedFor runs a feeder for a time and returns when it asked, counted from
// the start.
func feedFor(t *testing.T, f *feeder, src *slow, d time.Duration, during func()) []time.Duration {
	var out []time.Duration
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		events := make(chan Event)
		f.src, f.out, f.change = src, events, make(chan time.Duration, 1)
		begin := time.Now()
		done := make(chan struct{})
		go func() { f.run(ctx); close(done) }()
		go func() {
			for range events {
			}
		}()
		if during != nil {
			during()
		}
		time.Sleep(d - time.Since(begin))
		cancel()
		<-done
		close(events)
		for _, at := range src.at {
			out = append(out, at.Sub(begin))
		}
	})
	return out
}

func TestFeedKeepsTheBeat(t *testing.T) {
	got := feedFor(t, &feeder{interval: time.Second}, &slow{takes: 300 * time.Millisecond}, 3500*time.Millisecond, nil)
	for i, at := range got {
		if want := time.Duration(i) * time.Second; at != want {
			t.Errorf("question %d after %v, want %v", i, at, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("asked at %v", got)
	}
}

// A source slower than the interval is asked again when it has answered, not
// twice in a row to catch up.
func TestFeedSlowSource(t *testing.T) {
	got := feedFor(t, &feeder{interval: time.Second}, &slow{takes: 2500 * time.Millisecond}, 6*time.Second, nil)
	if len(got) != 3 || got[1] < 2500*time.Millisecond || got[2]-got[1] < 2500*time.Millisecond {
		t.Errorf("asked at %v", got)
	}
}

func TestFeedFailingSourceIsNotHammered(t *testing.T) {
	got := feedFor(t, &feeder{interval: 100 * time.Millisecond}, &slow{fail: true}, 3500*time.Millisecond, nil)
	if len(got) != 4 {
		t.Errorf("asked %d times in 3.5 s: %v", len(got), got)
	}
}

func TestFeedRefreshAndInterval(t *testing.T) {
	f := &feeder{interval: time.Hour}
	got := feedFor(t, f, &slow{}, 10*time.Second, func() {
		time.Sleep(3 * time.Second)
		f.change <- 0
		time.Sleep(time.Second)
		f.change <- 2 * time.Second
	})
	want := []time.Duration{0, 3 * time.Second, 6 * time.Second, 8 * time.Second}
	if len(got) < len(want) {
		t.Fatalf("asked at %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("asked at %v, want %v", got, want)
			break
		}
	}
}

// setInterval never waits for a feeder that is busy, and never loses an interval.
func TestTell(t *testing.T) {
	l := &loop{feed: &feeder{change: make(chan time.Duration, 1)}}
	l.setInterval(time.Minute)
	l.setInterval(0)
	if d := <-l.feed.change; d != time.Minute {
		t.Errorf("told %v", d)
	}
	l.setInterval(0)
	l.setInterval(time.Second)
	if d := <-l.feed.change; d != time.Second {
		t.Errorf("told %v", d)
	}
}
