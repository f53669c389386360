package collect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// addDevice says how busy the chips of a device are.
func (j *workJoin) addDevice(i int) {
	d := &j.snap.Devices[i]
	for slot := range d.Chips {
		d.Chips[slot].Work = j.chip(d, chipAt{i, slot})
	}
	j.checkDispatch(d)
	d.Work = busiest(d.Chips)
	if d.Work.Measured() {
		d.Activity = model.Activity{Ratio: model.Missing[float64](model.Absent, "it is measured how busy the device is")}
	}
}

// chip adds up what the processes on a chip had it do.
func (j *workJoin) chip(d *model.Device, at chipAt) model.Work {
	on := j.on[at]
	on = slices.DeleteFunc(slices.Clone(on), func(c *model.ChipWork) bool { return !c.Work.Busy.Known() && c.Work.Cause == "" })
	users := j.usersOf(d.Index)
	var w model.Work
	switch {
	case d.State != model.StateOK:
		w = model.NoWorkAs(stateStatus(d.State), model.WorkDeviceState)
	case len(on) > 0:
		w = sumWork(on)
		if w.Busy.Known() && w.Bound == model.Exact && j.unheard(users, d.Index) {
			w.Bound, w.Cause = model.AtLeast, model.WorkOtherProcess
		}
	case len(users) == 0 && j.idle(d.Index):
		w = model.Work{Busy: model.Value(0.0), Programs: model.Value(0.0), Late: model.Value(0.0)}
	case len(users) == 0:
		w = model.NoWork(model.WorkUsersHidden)
	default:
		w = model.NoWork(j.explain(d, &d.Chips[at.slot], users))
	}
	if w.Busy.Known() && w.Bound == model.AtLeast && w.Busy.V == 0 { // it says nothing
		w = model.NoWork(w.Cause)
	}
	t := j.total(totalKey{d.BusID, at.slot})
	t.listen(users, func(c *model.ChipWork) bool {
		return c.Device == d.Index && c.Chip == d.Chips[at.slot].Name && c.Source != model.FromFDInfo // which counts no programs
	})
	if w.Cause == model.WorkUsersHidden {
		t.doubt(model.AtLeast, w.Cause)
	}
	if t.programs == 0 && (!w.Measured() || w.Cause == model.WorkEngine) {
		return w
	}
	return t.shown().on(w)
}

// listen notes which users of a chip have reported nothing of it, and what those that
// never did leave in doubt.
func (t *workTotal) listen(users []*model.Process, of func(*model.ChipWork) bool) {
	for id := range t.silent {
		if !slices.ContainsFunc(users, func(p *model.Process) bool { return p.ID() == id }) {
			t.doubt(model.AtLeast, model.WorkOtherProcess)
			delete(t.silent, id)
		}
	}
	for _, p := range users {
		if slices.ContainsFunc(p.Work.Chips, func(c model.ChipWork) bool { return of(&c) }) {
			delete(t.silent, p.ID())
		} else {
			t.silent[p.ID()] = true
		}
	}
}

// shown are the totals as of now: a user that is silent may be running programs.
func (t *workTotal) shown() workTotal {
	now := *t
	if len(t.silent) > 0 {
		now.doubt(model.AtLeast, model.WorkOtherProcess)
	}
	return now
}

// stateStatus is why values of a device in a state are missing.
func stateStatus(s model.State) (status model.Status) {
	switch s {
	case model.StateHung:
		return model.Hung
	case model.StateLost:
		return model.Lost
	case model.StateResetting:
		return model.Resetting
	}
	return status
}

// usersOf are the processes that have a device open.
func (j *workJoin) usersOf(device int) (list []*model.Process) {
	for i := range j.snap.Processes {
		p := &j.snap.Processes[i]
		if slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == device && u.OpenFDs.V > 0 }) {
			list = append(list, p)
		}
	}
	return list
}

// unheard reports whether a process that has a device open says nothing of it.
func (j *workJoin) unheard(users []*model.Process, device int) bool {
	return slices.ContainsFunc(users, func(p *model.Process) bool {
		return !slices.ContainsFunc(p.Work.Chips, func(c model.ChipWork) bool { return c.Device == device })
	})
}

// sumWork adds up the work of several processes on one chip.
func sumWork(on []*model.ChipWork) model.Work {
	w := on[0].Work
	for _, c := range on[1:] {
		x := &c.Work
		switch {
		case !x.Busy.Known() && w.Busy.Known():
			if w.Bound < model.AtLeast {
				w.Bound, w.Cause = model.AtLeast, x.Cause
			}
		case x.Busy.Known() && !w.Busy.Known():
			cause := w.Cause
			if w = *x; w.Bound < model.AtLeast {
				w.Bound, w.Cause = model.AtLeast, cause
			}
		case x.Busy.Known():
			w.Busy.V += x.Busy.V
			w.Programs = addReadings(w.Programs, x.Programs)
			w.Late = addReadings(w.Late, x.Late)
			w.Window = max(w.Window, x.Window)
			if x.Bound > w.Bound {
				w.Bound, w.Cause = x.Bound, x.Cause
			}
		}
	}
	if w.Busy.V > 1 {
		if w.Busy.V > 1.02 {
			w.Bound, w.Cause = model.Unsure, model.WorkTooMuch
		}
		w.Busy.V = 1
	}
	w.Late.V = min(w.Late.V, 1-w.Busy.V)
	return w
}

func addReadings(a, b model.Reading[float64]) model.Reading[float64] {
	if !a.Known() || !b.Known() {
		return a
	}
	return model.Value(a.V + b.V)
}

// explain says why nothing is known of a chip that processes use.
func (j *workJoin) explain(d *model.Device, c *model.Chip, users []*model.Process) model.WorkCause {
	every := func(what func(*model.Process) bool) bool {
		return !slices.ContainsFunc(users, func(p *model.Process) bool { return !what(p) })
	}
	switch {
	case c.Remote:
		return model.WorkRemoteChip
	case every(func(p *model.Process) bool { return p.State == model.Hidden }):
		return model.WorkUsersHidden
	case every(func(p *model.Process) bool { return hasNoProfiler(p.Release.V) }):
		return model.WorkNoProfiler
	case !every(func(p *model.Process) bool { why, ok := j.listens[p.ID()]; return ok && why == "" }):
		return j.deaf(users)
	case d.Arch == model.Blackhole && !j.iommu(d):
		return model.WorkNoIOMMU
	}
	return model.WorkProfilerOff
}

// deaf is why the programs of one of a chip's users are not seen.
func (j *workJoin) deaf(users []*model.Process) model.WorkCause {
	for _, p := range users {
		if why := j.listens[p.ID()]; why != "" {
			return why
		}
	}
	return model.WorkNotWatched
}

// hasNoProfiler reports whether a release of tt-metal is known to have no
// real-time profiler: 0.71 was the first.
func hasNoProfiler(release string) bool {
	major, rest, ok := strings.Cut(release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return ok && err == nil && major == "0" && n < 71
}

// busiest is the work of a board: of the busiest of its chips.
func busiest(chips []model.Chip) model.Work {
	var best *model.Work
	unknown := false
	var sum workTotal
	totals := false
	for i := range chips {
		w := &chips[i].Work
		if t, ok := w.BusyTime.Get(); ok {
			sum.busy, sum.programs, totals = sum.busy+t, sum.programs+w.ProgramSum.V, true
			sum.doubt(w.TotalBound, model.WorkOtherChip)
		} else {
			sum.doubt(model.AtLeast, model.WorkOtherChip)
		}
		unknown = unknown || !w.Busy.Known()
		if best == nil || w.Busy.Known() && (!best.Busy.Known() || w.Busy.V > best.Busy.V) {
			best = w
		}
	}
	if best == nil {
		return model.NoWork(model.WorkNotWatched)
	}
	w := *best
	if w.Busy.Known() && unknown && w.Bound == model.Exact {
		w.Bound, w.Cause = model.AtLeast, model.WorkOtherChip
		if w.Busy.V == 0 {
			w = model.NoWork(model.WorkOtherChip)
		}
	}
	if totals {
		return sum.on(w)
	}
	return w
}
