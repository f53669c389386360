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
}

// timing keeps the runs; views of the daemon itself read it at any time.
type timing struct {
	mu   sync.Mutex
	runs []Run
}

// note notes a part that began at a time. It was ok if ok says so and it
// ended before the deadline.
func (t *timing) note(name string, begun, deadline time.Time, ok bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := -1
	for i := range t.runs {
		if t.runs[i].Name == name {
			at = i
		}
	}
	if at < 0 {
		at = len(t.runs)
		t.runs = append(t.runs, Run{Name: name})
	}
	r := &t.runs[at]
	r.Took, r.OK = now.Sub(begun), ok && now.Before(deadline)
	if r.OK {
		r.LastOK = now
	}
}

// Runs tells how the parts of the last collection went.
func (c *Collector) Runs() []Run {
	c.timing.mu.Lock()
	defer c.timing.mu.Unlock()
	return append([]Run(nil), c.timing.runs...)
}
