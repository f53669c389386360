package held

import (
	"maps"
	"time"
)

// Point is what a process held from a moment on, by device; a device of which
// nothing is known is not in it.
type Point struct {
	Time    time.Time
	Devices map[int]Pools
}

// Points tells what a process held between two times, change by change, and from
// when on it is known. Of more than n changes each point is the most of a step:
// no peak falls between two of them; step is 0 where every change is told. Ticks
// 0 stands for any process that had the pid.
func (l *Log) Points(pid int, ticks uint64, from, to time.Time, n int) (list []Point, since time.Time, step time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from.Before(l.since) {
		from = l.since
	}
	if to.After(l.last) {
		to = l.last
	}
	if l.last.IsZero() || !from.Before(to) {
		return nil, l.since, 0
	}
	list = l.all(pid, ticks, from, to)
	if len(list) > n {
		step = to.Sub(from) / time.Duration(n)
		list = thin(list, from, step, n)
	}
	return list, l.since, step
}

// all is what was held at from, at every change, and at to.
func (l *Log) all(pid int, ticks uint64, from, to time.Time) (list []Point) {
	state := map[int]Pools{}
	set := func(device int, p Pools) {
		if p == (Pools{}) {
			delete(state, device)
		} else {
			state[device] = p
		}
	}
	add := func(at time.Time) {
		if last := len(list) - 1; last >= 0 && list[last].Time.Equal(at) {
			list[last].Devices = maps.Clone(state)
		} else {
			list = append(list, Point{at, maps.Clone(state)})
		}
	}
	is := func(x *series) bool { return x.pid == pid && (ticks == 0 || x.ticks == ticks) }
	for _, x := range l.series {
		if is(x) && x.before != (Pools{}) {
			set(x.device, x.before)
		}
	}
	begun := false
	for i := range l.changes {
		c := &l.changes[i]
		if c.at.After(to) {
			break
		}
		if !is(c.of) {
			continue
		}
		if !begun && c.at.After(from) {
			begun = true
			if len(state) > 0 {
				add(from)
			}
		}
		set(c.of.device, c.to)
		if begun {
			add(c.at)
		}
	}
	if !begun && len(state) > 0 {
		add(from)
	}
	if len(state) > 0 {
		add(to)
	}
	return list
}

// thin makes a point of each step: the most that was held in it.
func thin(all []Point, from time.Time, step time.Duration, n int) (list []Point) {
	var now, told map[int]Pools
	for i := range n {
		begin := from.Add(time.Duration(i) * step)
		peak := maps.Clone(now)
		for len(all) > 0 && (i == n-1 || all[0].Time.Before(begin.Add(step))) {
			now = all[0].Devices
			peak = higher(peak, now)
			all = all[1:]
		}
		if i == 0 || !maps.Equal(peak, told) {
			list = append(list, Point{begin, peak})
			told = peak
		}
	}
	return list
}

// higher is the more of two, pool by pool. It changes a.
func higher(a, b map[int]Pools) map[int]Pools {
	if a == nil {
		return maps.Clone(b)
	}
	for device, p := range b {
		top := a[device]
		for pool, f := range p {
			if f.Known && (!top[pool].Known || f.Bytes > top[pool].Bytes) {
				top[pool] = f
			}
		}
		a[device] = top
	}
	return a
}
