package prom

import (
	"github.com/ttmon/ttmon/internal/node/stream"
)

func (w *Walker) self(self *stream.Self, emit Emit) {
	if self == nil {
		self = &stream.Self{}
	}
	named := func(key, name string) Labels {
		w.buf = label(w.buf[:0], key, name)
		return w.buf
	}
	for _, s := range self.Sources {
		emit(sourceDuration, named("collector", s.Name), s.Duration.Seconds())
	}
	for _, s := range self.Sources {
		emit(sourceSuccess, named("collector", s.Name), flag(s.OK))
	}
	for _, s := range self.Sources {
		if !s.LastOK.IsZero() {
			emit(sourceLast, named("collector", s.Name), float64(s.LastOK.UnixMilli())/1000)
		}
	}
	limits := append(self.Limits[:len(self.Limits):len(self.Limits)], stream.Limit{
		Name: "workloads", Max: float64(w.opt.MaxWorkloads + w.opt.Processes), Used: float64(len(w.groups) + w.shown), Dropped: w.dropped,
	})
	for _, l := range limits {
		emit(limitMax, named("limit", l.Name), l.Max)
	}
	for _, l := range limits {
		emit(limitUsed, named("limit", l.Name), l.Used)
	}
	for _, l := range limits {
		emit(limitDropped, named("limit", l.Name), l.Dropped)
	}
	for _, c := range self.Clients {
		emit(clients, named("kind", c.Kind), float64(c.Count))
	}
}
