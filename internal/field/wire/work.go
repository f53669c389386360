package wire

import (
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// work is how busy a chip is, measured: there where a snapshot has it, or the
// reason why not.
func work(a archive, w *model.Work) {
	if !a.maybe("work", w.Cause != "" || w.Busy.Known()) {
		return
	}
	a.begin()
	workFigures(a, w)
	a.close()
}

func workFigures(a archive, w *model.Work) {
	reading(a, "busy_ratio", &w.Busy)
	field(a, "busy_bound", &w.Bound)
	optional(a, "cause", (*string)(&w.Cause))
	text := ""
	if !a.reads() {
		text = words.WorkCause(w.Cause)
	}
	field(a, "text", &text)
	field(a, "window_s", &w.Window)
	programs, late := w.ShareBound(), w.LateBound() // they follow from what was read
	reading(a, "programs_per_s", &w.Programs)
	field(a, "programs_bound", &programs)
	reading(a, "late_ratio", &w.Late)
	field(a, "late_bound", &late)
	reading(a, "busy_ns_total", &w.BusyTime)
	reading(a, "programs_total", &w.ProgramSum)
	field(a, "totals_bound", &w.TotalBound)
}

// processWork is what a process had its chips do.
func processWork(a archive, p *model.ProcessWork) {
	if a.maybe("work", len(p.Chips) > 0 || p.Watched || p.HostCause != model.HostNotWatched) {
		a.begin()
		if !a.null("host", !p.Watched) {
			a.begin()
			hostWork(a, &p.Host)
			a.close()
			if a.reads() {
				p.Watched = true
			}
		}
		optional(a, "host_cause", (*string)(&p.HostCause))
		items(a, "chips", &p.Chips, chipWork)
		a.close()
	}
}

func hostWork(a archive, h *model.HostWork) {
	field(a, "enqueued", &h.Enqueued)
	field(a, "replayed", &h.Replayed)
	field(a, "command_queues", &h.Queues)
	field(a, "sub_devices", &h.SubDevices)
	instant(a, "last_enqueue", &h.LastEnqueue)
	instant(a, "last_finish", &h.LastFinish)
	optional(a, "last_name", &h.LastName)
	instant(a, "waiting_since", &h.WaitingSince)
	optional(a, "waiting_for", (*string)(&h.WaitingFor))
}

func chipWork(a archive, c *model.ChipWork) {
	a.scope()
	kernelIndex(a, "index", &c.Device)
	optional(a, "chip", &c.Chip)
	field(a, "chip_id", (*decimal)(&c.ChipID))
	field(a, "source", (*string)(&c.Source))
	workFigures(a, &c.Work)
	field(a, "longest_s", &c.Longest)
	optional(a, "longest_name", &c.LongestName)
	field(a, "longest_gap_s", &c.LongestGap)
	optional(a, "last_name", &c.LastName)
	instant(a, "last_record", &c.LastRecord)
	instant(a, "since", &c.Since)
	field(a, "stalled_ns", &c.Stalled)
	items(a, "operations", &c.Operations, operation)
	items(a, "gaps", &c.Gaps, gap)
	rare(a, "gaps_cause", (*string)(&c.GapsCause))
	a.endScope()
}

func gap(a archive, g *model.Gap) {
	field(a, "length_ns", &g.Length)
	instant(a, "end", &g.End)
	rare(a, "after", &g.After)
}

func operation(a archive, o *model.Operation) {
	a.scope()
	field(a, "name", &o.Name)
	rare(a, "others", &o.Others)
	field(a, "calls", &o.Calls)
	field(a, "time_ns", &o.Time)
	field(a, "longest_ns", &o.Longest)
	reading(a, "share_ratio", &o.Share)
	reading(a, "calls_per_s", &o.Rate)
	a.endScope()
}
