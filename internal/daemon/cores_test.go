package daemon

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestUseFewCores(t *testing.T) {
	for _, tt := range []struct {
		name, given string
		there, want int
	}{
		{"many", "", 96, 1},
		{"one", "", 1, 1},
		{"given", "8", 8, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", tt.given)
			before := runtime.GOMAXPROCS(tt.there)
			UseFewCores()
			if got := runtime.GOMAXPROCS(before); got != tt.want {
				t.Errorf("GOMAXPROCS=%q on %d cores: %d, want %d", tt.given, tt.there, got, tt.want)
			}
		})
	}
}

func TestCores(t *testing.T) {
	for _, tt := range []struct {
		name  string
		now   int
		share float64
		want  int
	}{
		{"idle", 1, 0.01, 1},
		{"busier, not busy", 1, 0.2, 1},
		{"busy", 1, 0.9, 2},
		{"still busy", 2, 1.8, 2},
		{"less busy, not idle", 2, 0.2, 2},
		{"idle again", 2, 0.02, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cores(tt.now, tt.share); got != tt.want {
				t.Errorf("%d cores at %v of one: %d, want %d", tt.now, tt.share, got, tt.want)
			}
		})
	}
}

// TestAdjustCores: a process that is busy gets the second core, and gives it back.
func TestAdjustCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, cancel := context.WithCancel(t.Context())
	ticks, asked, ended := make(chan time.Time), make(chan time.Duration), make(chan struct{})
	at := time.Now()
	go func() {
		defer close(ended)
		adjustCores(ctx, at, ticks, func() time.Duration { return <-asked })
	}()
	asked <- time.Hour
	used := time.Hour
	for _, c := range []struct {
		name string
		took time.Duration // in a second
		want int
	}{{"idle", time.Millisecond, 1}, {"busy", time.Second, 2}, {"less", 200 * time.Millisecond, 2}, {"idle again", 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			at, used = at.Add(time.Second), used+c.took
			ticks <- at
			asked <- used
			ticks <- at.Add(time.Millisecond) // the one before has been decided
			if got := runtime.GOMAXPROCS(0); got != c.want {
				t.Errorf("%d cores, want %d", got, c.want)
			}
			at, used = at.Add(time.Millisecond), used+150*time.Microsecond // changes nothing
			asked <- used
		})
	}
	cancel()
	<-ended
}
