package event

import (
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// Detector compares each snapshot with the one before. The zero Detector
// makes no events of the first snapshot.
type Detector struct{ prev *model.Snapshot }

// Next returns what happened since the last snapshot.
func (d *Detector) Next(s *model.Snapshot) []model.Event {
	prev := d.prev
	d.prev = s
	if prev == nil {
		return nil
	}
	c := &comparison{old: prev, now: s, was: assess.Of(prev), is: assess.Of(s)}
	c.origin()
	c.devices()
	c.links()
	c.kernelLog()
	c.processes()
	c.staleSlots()
	return c.events
}

// comparison collects the events of one step.
type comparison struct {
	old, now *model.Snapshot
	was, is  *assess.Assessment
	events   []model.Event
}

// origin notes when ttmond takes over from our own reading, or the other way.
func (c *comparison) origin() {
	switch {
	case c.old.Source == c.now.Source:
	case c.now.Source == model.Daemon:
		c.add(model.EventSource, model.Info, nil, "ttmond", "ttmond answers: it sees every user's memory")
	case c.old.Source == model.Daemon:
		c.add(model.EventSource, model.Warning, nil, "no ttmond", "ttmond does not answer any more: the host is read directly")
	}
}

func (c *comparison) add(k model.EventKind, l model.Level, devices []string, short, text string) {
	c.events = append(c.events, model.Event{Time: c.now.Time, Kind: k, Level: l, Devices: devices, Short: short, Text: text, Process: k.Row().Process})
}
