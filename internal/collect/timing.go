package collect

import (
	"sync"
	"time"
)

// Run is how one part of the last collection went.
type Run struct {
	Name   string
	Took   time.Duration
	OK     bool
	LastOK time.Time // zero: never
	Since  time.Time // when it began, while it is at work; zero: it is not
}

// timing keeps the runs; views of the daemon itself read it at any time.
type timing struct {
	mu   sync.Mutex
	runs []Run
}

// run runs a part, which succeeded if do returned true before the deadline.
func (t *timing) run(name string, deadline time.Time, do func() (ok bool)) {
	begun := time.Now()
	t.change(name, func(r *Run) { r.Since = begun })
	ok := do()
	now := time.Now()
	t.change(name, func(r *Run) {
		r.Took, r.OK, r.Since = now.Sub(begun), ok && now.Before(deadline), time.Time{}
		if r.OK {
			r.LastOK = now
		}
	})
}

// change changes what is known of a part.
func (t *timing) change(name string, f func(*Run)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.runs {
		if t.runs[i].Name == name {
			f(&t.runs[i])
			return
		}
	}
	r := Run{Name: name}
	f(&r)
	t.runs = append(t.runs, r)
}

// Runs tells how the parts of the last collection went, and which is at work
// now. It never waits for one.
func (c *Collector) Runs() []Run {
	c.timing.mu.Lock()
	defer c.timing.mu.Unlock()
	return append([]Run(nil), c.timing.runs...)
}
