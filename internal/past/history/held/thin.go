package held

import (
	"maps"
	"time"
)

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
