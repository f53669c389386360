package main

import (
	"path"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/nearest"
	"github.com/ttmon/ttmon/internal/source/shm"
)

// find is a region in question, with what the reader knows of them.
type find struct {
	model.Leftover
	region *shm.Region
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
		f := find{leftover(s, l.Region), l.Region}
		f.Blocked, f.Denied = l.Blocked, l.Region.Why == model.Denied
		list = append(list, f)
	}
	return list
}

// leftover is a region as the views show it.
func leftover(s *model.Snapshot, r *shm.Region) model.Leftover {
	out := model.Leftover{Region: r.Path, ChipID: r.ID, Device: model.NoDevice, Owner: r.Owner}
	for i := range s.Devices {
		for j := range s.Devices[i].Chips {
			if id, ok := s.Devices[i].Chips[j].ID.Get(); ok && id == r.ID {
				out.Device = s.Devices[i].Index
			}
		}
	}
	of := func(g shm.Ghost) model.Ghost {
		return model.Ghost{
			Region: r.Path, ChipID: r.ID, Device: out.Device, PID: g.PID, Name: g.Name, Bytes: g.Bytes, Updated: g.Updated, Mapped: len(r.Mapped) > 0,
		}
	}
	for _, g := range r.Ghosts {
		out.Ghosts = append(out.Ghosts, of(g))
	}
	for _, g := range r.Unknown {
		out.Unseen = append(out.Unseen, of(g))
	}
	return out
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
