// Package held is what a process held of each device over time, made of the
// snapshots of that time.
package held

import (
	"maps"
	"time"

	"github.com/ttmon/ttmon/internal/model"
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

// Point is what a process held from a moment on, by device; a device of which
// nothing is known is not in it.
type Point struct {
	Time    time.Time
	Devices map[int]Pools
}

// By is what the process with a pid holds; nil: it does not run. Ticks 0 stands for any
// start time.
func By(processes []model.Process, pid int, ticks uint64) map[int]Pools {
	for i := range processes {
		if p := &processes[i]; p.PID == pid && (ticks == 0 || p.StartTicks == ticks) {
			return of(p)
		}
	}
	return nil
}

// of is what a process holds in a snapshot.
func of(p *model.Process) map[int]Pools {
	out := map[int]Pools{}
	for i := range p.Devices {
		u := &p.Devices[i]
		if u.Device == model.NoDevice {
			continue
		}
		var pools Pools
		for pool := range pools {
			if n, bound, known := u.Memory[pool].Best(); known {
				pools[pool] = Figure{n, bound, true}
			}
		}
		if pools != (Pools{}) {
			out[u.Device] = pools
		}
	}
	return out
}

// silence between two snapshots: what was held meanwhile is not known.
const silence = 10 * time.Second

// Line is what one process held, change by change, between two times.
type Line struct {
	from, to time.Time
	list     []Point
	now      map[int]Pools
	last     time.Time // of the last snapshot
}

// NewLine returns an empty line.
func NewLine(from, to time.Time) *Line { return &Line{from: from, to: to} }

// See takes in the next snapshot, in which the process holds so much; nil: it does
// not run. Snapshots up to to count, those before from as far as they still hold.
func (l *Line) See(at time.Time, devices map[int]Pools) {
	if at.After(l.to) {
		return
	}
	if !l.last.IsZero() && at.Sub(l.last) > silence {
		l.change(l.last.Add(time.Millisecond), nil)
	}
	l.change(at, devices)
	l.last = at
}

func (l *Line) change(at time.Time, devices map[int]Pools) {
	if at.Before(l.from) {
		at = l.from
	}
	if maps.Equal(l.now, devices) {
		return
	}
	l.now = devices
	if n := len(l.list); n > 0 && !at.After(l.list[n-1].Time) {
		l.list[n-1].Devices = devices
	} else {
		l.list = append(l.list, Point{at, devices})
	}
}

// Points are at most n points. Of more changes each is the most of a step: no peak
// falls between two of them; step is 0 where every change is in the list.
func (l *Line) Points(n int) (list []Point, step time.Duration) {
	list = l.list
	for len(list) > 0 && len(list[0].Devices) == 0 { // nothing was held yet
		list = list[1:]
	}
	if len(l.now) > 0 && l.last.After(list[len(list)-1].Time) {
		list = append(list, Point{l.last, l.now})
	}
	if len(list) > n {
		to := l.last
		step = to.Sub(l.from) / time.Duration(n)
		list = thin(list, l.from, step, n)
	}
	return list, step
}
