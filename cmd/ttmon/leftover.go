package main

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/nearest"
	"github.com/ttmon/ttmon/internal/source/shm"
)

// find is a region in question, with what the reader knows of them.
type find struct {
	model.Leftover
	region *shm.Region // nil: a ttmond told of it
}

// users are the processes whose containers may have regions of their own.
func users(s *model.Snapshot) []shm.User {
	var list []shm.User
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running {
			list = append(list, shm.User{PID: p.PID, StartTicks: p.StartTicks})
		}
	}
	return list
}

// findings are the regions with ghosts, those with somebody whose process
// cannot be seen, and those that nobody may look into.
func findings(s *model.Snapshot, sweep *shm.Sweep) []find {
	var list []find
	for _, l := range sweep.Leftovers() {
		list = append(list, find{collect.Leftover(s.Devices, l), l.Region})
	}
	return list
}

// merge adds what a ttmond told to what was seen here: it may look where we may
// not. Of a region that both could look into, ours is what can be removed.
func merge(list []find, told []model.Leftover) []find {
	list = slices.DeleteFunc(list, func(f find) bool { // the daemon looked, and found nothing
		return f.Denied && !slices.ContainsFunc(told, func(l model.Leftover) bool { return l.Region == f.Region })
	})
	for _, l := range told {
		i := slices.IndexFunc(list, func(f find) bool { return f.Region == l.Region })
		switch {
		case i < 0:
			list = append(list, find{Leftover: l})
		case list[i].Denied:
			list[i] = find{Leftover: l}
		case len(list[i].Unseen) > 0 && len(l.Unseen) == 0 && !l.Denied:
			list[i].Leftover = l
		}
	}
	slices.SortStableFunc(list, func(a, b find) int { return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.ChipID, b.ChipID)) })
	return list
}

// named keeps the regions that were named: by path, file name or chip id.
func named(list []find, names []string) ([]find, error) {
	if len(names) == 0 {
		return list, nil
	}
	fits := func(f find, name string) bool {
		return name == f.Region || name == path.Base(f.Region) || name == strconv.FormatUint(f.ChipID, 10)
	}
	var known []string
	for _, f := range list {
		known = append(known, f.Region, strconv.FormatUint(f.ChipID, 10))
	}
	for _, name := range names {
		if slices.ContainsFunc(list, func(f find) bool { return fits(f, name) }) {
			continue
		}
		if n := nearest.Word(name, known); n != "" {
			return nil, usage("nothing stale in %q: did you mean %s?", name, n)
		}
		return nil, usage("nothing stale in %q: ttmon stale lists what there is", name)
	}
	return slices.DeleteFunc(list, func(f find) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return fits(f, name) })
	}), nil
}
