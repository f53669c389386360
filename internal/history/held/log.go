// Package held keeps what each process held of each device, with every change of
// the last hour, in memory: between the whole snapshots on the disk, which are ten
// seconds apart, much comes and goes.
//
// Only changes are kept, in one list for all processes, so that a host whose
// programs allocate once and then compute costs next to nothing.
package held

import (
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

const (
	length = time.Hour
	// most is how many changes are kept, about 7 MB: with more of them in an hour
	// the oldest are forgotten first.
	most = 1 << 16
	// silence between two snapshots: what was held meanwhile is not known.
	silence = 10 * time.Second
)

// Figure is how much of a pool was held; the zero Figure is not known.
type Figure struct {
	Bytes uint64
	Bound model.Bound
	Known bool
}

// Pools is what a process held of a device; the zero Pools is of one that did
// not run, or of which nothing is known.
type Pools [model.NumPools]Figure

// Log is what was held. Its methods may be called by any goroutine; the zero Log
// is empty.
type Log struct {
	mu      sync.Mutex
	series  map[key]*series
	changes []change  // by time
	since   time.Time // every change from then on is known
	last    time.Time // of the last snapshot
	round   uint64
}

type key struct {
	pid    int
	ticks  uint64
	device int
}

// series is one process on one device.
type series struct {
	key
	before Pools // what was held before its first change that is kept
	now    Pools
	kept   int    // changes
	seen   uint64 // the round in which it was last there
}

type change struct {
	at time.Time
	of *series
	to Pools
}

// Observe takes in the next snapshot.
func (l *Log) Observe(s *model.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.Time.After(l.last) { // the clock was set back: what was later than now was not
		l.series, l.changes, l.last = nil, nil, time.Time{}
	}
	if l.last.IsZero() {
		l.series, l.since = map[key]*series{}, s.Time
	} else if s.Time.Sub(l.last) > silence {
		for _, x := range l.series {
			l.put(x, l.last.Add(time.Millisecond), Pools{})
		}
	}
	l.last = s.Time
	l.round++
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			if u := &p.Devices[j]; u.Device != model.NoDevice {
				x := l.of(key{p.PID, p.StartTicks, u.Device})
				x.seen = l.round
				l.put(x, s.Time, poolsOf(u))
			}
		}
	}
	for k, x := range l.series {
		if x.seen == l.round {
			continue
		}
		if l.put(x, s.Time, Pools{}); x.kept == 0 { // nothing was ever known of it
			delete(l.series, k)
		}
	}
	l.forget(s.Time.Add(-length))
}

func (l *Log) of(k key) *series {
	x := l.series[k]
	if x == nil {
		x = &series{key: k}
		l.series[k] = x
	}
	return x
}

func (l *Log) put(x *series, at time.Time, to Pools) {
	if to != x.now {
		x.now = to
		x.kept++
		l.changes = append(l.changes, change{at, x, to})
	}
}

// forget drops changes before a time, and those over the bound.
func (l *Log) forget(before time.Time) {
	n := max(len(l.changes)-most, 0)
	for n < len(l.changes) && l.changes[n].at.Before(before) {
		n++
	}
	for _, c := range l.changes[:n] {
		c.of.before = c.to
		if c.of.kept--; c.of.kept == 0 && c.of.now == (Pools{}) {
			delete(l.series, c.of.key)
		}
		l.since = c.at
	}
	clear(l.changes[:n]) // they hold on to series
	l.changes = l.changes[n:]
	if l.since.Before(before) {
		l.since = before
	}
}

func poolsOf(u *model.DeviceUse) (p Pools) {
	for pool := range p {
		if n, bound, known := u.Memory[pool].Best(); known {
			p[pool] = Figure{n, bound, true}
		}
	}
	return p
}
