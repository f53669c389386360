package prom

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// maxOperationSeries is how many operations of a process and chip have series of
// their own: those that took most of the chip's time.
const maxOperationSeries = 10

// work emits what processes had chips do. They are as many as have series of
// their memory.
func (w *Walker) work(s *model.Snapshot, emit Emit) {
	w.eachChipWork(s, func(labels Labels, c *model.ChipWork) {
		if ns, ok := c.Work.BusyTime.Get(); ok {
			emit(processBusy, labels, float64(ns)/1e9)
		}
	})
	w.eachChipWork(s, func(labels Labels, c *model.ChipWork) {
		if n, ok := c.Work.ProgramSum.Get(); ok {
			emit(processRan, labels, float64(n))
		}
	})
	w.eachChipWork(s, func(labels Labels, c *model.ChipWork) {
		if c.LongestGap > 0 && (c.GapsCause == "" || c.GapsCause == model.GapsNotKept) {
			emit(processGap, labels, c.LongestGap)
		}
	})
	w.eachOperation(s, func(labels Labels, o *model.Operation) { emit(operationBusy, labels, float64(o.Time)/1e9) })
	w.eachOperation(s, func(labels Labels, o *model.Operation) { emit(operationCalls, labels, float64(o.Calls)) })
}

func (w *Walker) eachChipWork(s *model.Snapshot, each func(labels Labels, c *model.ChipWork)) {
	for i := range min(w.opt.Processes, len(s.Processes)) {
		p := &s.Processes[i]
		for k := range p.Work.Chips {
			c := &p.Work.Chips[k]
			if p.PID == 0 {
				continue
			}
			b := w.deviceLabels(s, c.Device)
			if c.Device == model.NoDevice {
				b = label(b, "foreign_chip", strconv.FormatUint(c.ChipID, 10))
			}
			b = label(b, "chip", c.Chip)
			b = label(b, "pid", strconv.Itoa(p.PID))
			if name, ok := p.Name.Get(); ok {
				b = label(b, "process", name)
			}
			if user, ok := p.User.Get(); ok {
				b = label(b, "user", user)
			}
			w.buf = b
			each(b, c)
		}
	}
}

// eachOperation passes over operations without a name, and what is summed up.
func (w *Walker) eachOperation(s *model.Snapshot, each func(labels Labels, o *model.Operation)) {
	w.eachChipWork(s, func(labels Labels, c *model.ChipWork) {
		n := len(labels)
		for i, o := range mostTime(c.Operations) {
			if i == maxOperationSeries {
				break
			}
			labels = label(labels[:n], "operation", o.Name)
			w.buf = labels
			each(labels, o)
		}
	})
}

// mostTime lists the named operations by the time they took in all: those of
// the window come and go, and series should not.
func mostTime(list []model.Operation) []*model.Operation {
	var out []*model.Operation
	for i := range list {
		if list[i].Name == "" {
			continue
		}
		at := len(out)
		for at > 0 && out[at-1].Time < list[i].Time {
			at--
		}
		out = append(out, nil)
		copy(out[at+1:], out[at:])
		out[at] = &list[i]
	}
	return out
}
