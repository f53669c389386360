package metric

import (
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Utilization is nvidia-smi's name for the share of time in which a kernel runs.
const Utilization = "utilization.gpu"

// busy is a figure of a chip's work, with its bound, or why there is none.
func busy(w *model.Work, r model.Reading[float64], bound model.Bound) Value {
	v := num(r)
	if v.Known() {
		v.Bound = bound
		return v
	}
	if !w.Busy.Known() { // else it is this figure alone that is missing, for its own reason
		v.Why = words.WorkCause(w.Cause)
	}
	return v
}

// total is a counter of a chip's work.
func total(w *model.Work, r model.Reading[uint64]) Value {
	v := num(r)
	switch {
	case v.Known():
		v.Bound = w.TotalBound
	case w.Cause != "": // else it is the totals alone that are missing, for their own reason
		v.Why = words.WorkCause(w.Cause)
	}
	return v
}

// boundOf is the bound of a figure as a word, or why there is no figure.
func boundOf(v Value) Value {
	if !v.Known() {
		return v
	}
	return str(v.Bound.String())
}

// work is what runs on a device, measured.
func work() []Device {
	of := func(get func(*model.Work) Value) getDevice {
		return func(_ *model.Snapshot, d *model.Device) Value { return get(&d.Work) }
	}
	prom := func(p Prom, bound, chip string) Prom {
		p.Bound, p.Chip = bound, chip
		return p
	}
	return []Device{
		{
			Name: "busy", Title: "Busy", Head: "Busy", Kind: Gauge, Rate: true, Unit: "%", Per: 0.01, Decimals: 1, JSON: "work.busy_ratio",
			Help: "share of the time in which a program ran on the device (of the busiest of its chips), as tt-metal reports; not the share of its cores",
			Prom: prom(gauge("busy_ratio"), "tenstorrent_busy_bound", "tenstorrent_chip_busy_ratio"),
			Get:  of(func(w *model.Work) Value { return busy(w, w.Busy, w.Bound) }),
		},
		{
			Name: "busy.bound", Help: boundHelp + "busy", JSON: "work.busy_bound",
			Get: of(func(w *model.Work) Value { return boundOf(busy(w, w.Busy, w.Bound)) }),
		},
		{
			Name: "busy.reason", Title: "Busy, Reason", Sparse: true, Help: "why busy is not known, or not exactly",
			Get: of(func(w *model.Work) Value { return str(words.WorkCause(w.Cause)) }),
		},
		{
			Name: "busy.time", Title: "Busy Time", Sparse: true, Kind: Counter, Unit: "s", Per: 1e9, Decimals: 3, JSON: "work.busy_ns_total",
			Help: "time in which programs ran that ended since ttmon first saw the device report, over all its chips",
			Prom: prom(counter("busy_seconds_total", "").with("", 1e-9), "", "tenstorrent_chip_busy_seconds_total"),
			Get:  of(func(w *model.Work) Value { return total(w, w.BusyTime) }),
		},
		{
			Name: "programs", Title: "Programs", Sparse: true, Kind: Counter, JSON: "work.programs_total", Help: "programs that ended since then",
			Prom: prom(counter("programs_total", ""), "", "tenstorrent_chip_programs_total"),
			Get:  of(func(w *model.Work) Value { return total(w, w.ProgramSum) }),
		},
		{
			Name: "programs.bound", Help: boundHelp + "programs and busy.time", JSON: "work.totals_bound",
			Get: of(func(w *model.Work) Value { return boundOf(total(w, w.ProgramSum)) }),
		},
		{
			Name: "programs.rate", Title: "Programs Per Second", Sparse: true, Kind: Gauge, Rate: true, Unit: "1/s", JSON: "work.programs_per_s", Help: "programs that ran a second; needs a second sample",
			Get: of(func(w *model.Work) Value { return busy(w, w.Programs, w.ShareBound()) }),
		},
		{
			Name: "programs.rate.bound", Help: boundHelp + "programs.rate", JSON: "work.programs_bound",
			Get: of(func(w *model.Work) Value { return boundOf(busy(w, w.Programs, w.ShareBound())) }),
		},
		{
			Name: "busy.late", Title: "Waiting For The Host", Sparse: true, Kind: Gauge, Rate: true, Unit: "%", Per: 0.01, Decimals: 1, JSON: "work.late_ratio",
			Help: "share of the time between programs that follow within 100 ms: the device waited for the host", Prom: gauge("host_late_ratio"),
			Get: of(func(w *model.Work) Value { return busy(w, w.Late, w.LateBound()) }),
		},
		{
			Name: Utilization, Kind: Gauge, Rate: true, Unit: "%", Per: 0.01,
			Help: "busy, under nvidia-smi's name; with --allow-estimates activity.estimate where that is not known",
			Get:  of(func(w *model.Work) Value { return busy(w, w.Busy, w.Bound) }),
		},
	}
}

// BusyField is the field that says how busy a device is: measured, or estimated
// where that is all there is. A device whose programs are reported stays measured while
// none of them ends: the estimate would come and go with every long program.
func BusyField(d *model.Device) *Device {
	reported := d.Work.Measured() || d.Work.Cause == model.WorkSilent && d.Work.ProgramSum.V > 0
	if !reported && (d.Activity.Ratio.Known() || d.Work.Cause == "") {
		return Named("activity.estimate")
	}
	return Named("busy")
}

// worked is what a process had a device do.
func worked() []App {
	of := func(get func(*model.ChipWork) Value) func(*model.Snapshot, Use) Value {
		return func(_ *model.Snapshot, u Use) Value {
			if c := BusiestChip(u.Process, u.Device.Device); c != nil {
				return get(c)
			}
			return Value{Why: words.WorkCause(model.WorkNotWatched)}
		}
	}
	return []App{
		{
			Name: "busy", Kind: Gauge, Rate: true, Unit: "%", Per: 0.01, Decimals: 1, Synonyms: same("sm"),
			Help: "share of the time in which one of its programs ran on the device (on the busiest of its chips)",
			Get:  of(func(c *model.ChipWork) Value { return busy(&c.Work, c.Work.Busy, c.Work.Bound) }),
		},
		{
			Name: "busy.bound", Help: boundHelp + "busy",
			Get: of(func(c *model.ChipWork) Value { return boundOf(busy(&c.Work, c.Work.Busy, c.Work.Bound)) }),
		},
		{
			Name: "busy.reason", Help: "why busy is not known, or not exactly",
			Get: of(func(c *model.ChipWork) Value { return str(words.WorkCause(c.Work.Cause)) }),
		},
		{
			Name: "busy.time", Kind: Counter, Unit: "s", Per: 1e9, Decimals: 3, Help: "time in which its programs ran on that chip",
			Get: of(func(c *model.ChipWork) Value { return total(&c.Work, c.Work.BusyTime) }),
		},
		{
			Name: "programs", Kind: Counter, Help: "its programs that ran on that chip",
			Get: of(func(c *model.ChipWork) Value { return total(&c.Work, c.Work.ProgramSum) }),
		},
		{
			Name: "programs.bound", Help: boundHelp + "programs and busy.time",
			Get: of(func(c *model.ChipWork) Value { return boundOf(total(&c.Work, c.Work.ProgramSum)) }),
		},
		{
			Name: "operation", Help: "the operation that takes most of that chip's time",
			Get: of(func(c *model.ChipWork) Value {
				if len(c.Operations) == 0 {
					return Value{}
				}
				return str(words.Operation(&c.Operations[0]))
			}),
		},
	}
}

// BusiestChip is what a process had a device do: on that of its chips which is
// busiest. Nil: nothing is known.
func BusiestChip(p *model.Process, device int) (best *model.ChipWork) {
	for i := range p.Work.Chips {
		c := &p.Work.Chips[i]
		if c.Device != device {
			continue
		}
		if best == nil || c.Work.Busy.Known() && (!best.Work.Busy.Known() || c.Work.Busy.V > best.Work.Busy.V) {
			best = c
		}
	}
	return best
}
