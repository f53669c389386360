package collect

import (
	"context"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs"
)

func TestTiming(t *testing.T) {
	var c Collector
	later := time.Now().Add(time.Hour)
	good := func() bool { return true }
	c.timing.run("kmd", later, good)
	c.timing.run("shm", time.Now().Add(-time.Second), good) // too late
	c.timing.run("kmd", later, func() bool { return false })
	runs := c.Runs()
	if len(runs) != 2 || runs[0].OK || runs[0].LastOK.IsZero() || runs[1].OK || runs[1].Took <= 0 || !runs[1].LastOK.IsZero() {
		t.Errorf("runs %+v", runs)
	}
}

// A source that does not come back is seen while it does not.
func TestSourceAtWork(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	c := New(hostfs.At(t.TempDir()), Options{Sources: []Source{{Name: "stuck", Claims: func() claim.Set {
		close(asked)
		<-answer
		return claim.Set{}
	}}}})
	defer c.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Collect(context.Background())
	}()
	<-asked
	atWork := func() (names []string) {
		for _, r := range c.Runs() {
			if !r.Since.IsZero() {
				names = append(names, r.Name)
			}
		}
		return names
	}
	if got := atWork(); len(got) != 1 || got[0] != "stuck" {
		t.Errorf("at work: %v", got)
	}
	close(answer)
	<-done
	if got := atWork(); len(got) != 0 {
		t.Errorf("still at work: %v", got)
	}
	seen := map[string]bool{}
	for _, r := range c.Runs() {
		seen[r.Name] = r.OK
	}
	for _, name := range []string{"kmd", "processes", "shm", "track", "stuck", "join", "umd"} {
		if !seen[name] {
			t.Errorf("%s was not asked, or did not answer in time: %v", name, seen)
		}
	}
}
