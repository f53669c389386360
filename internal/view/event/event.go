package event

import (
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Kind is what sort of thing happened.
type Kind string

// The kinds of events.
const (
	Started  Kind = "started"  // a process began to use devices
	Gone     Kind = "gone"     // it stopped using all of them
	Died     Kind = "died"     // it left memory accounted behind
	State    Kind = "state"    // a device changed its state
	Appeared Kind = "appeared" // a device came
	Removed  Kind = "removed"  // a device went
	Throttle Kind = "throttle" // a device became hot or throttled, or recovered
	Tripped  Kind = "tripped"  // a device shut itself down for heat
	Link     Kind = "link"     // the PCIe link became slower or recovered
	Ethernet Kind = "ethernet" // an Ethernet link went down, or came up again
	Log      Kind = "log"      // the driver or a chip's firmware wrote into the kernel's log
	Source   Kind = "source"   // the source of the snapshots went or came back
)

// Kinds lists them.
func Kinds() []Kind {
	return []Kind{Started, Gone, Died, State, Appeared, Removed, Throttle, Tripped, Link, Ethernet, Log, Source}
}

// Event is one thing that happened.
type Event struct {
	At      time.Time
	Kind    Kind
	Level   words.Level
	Devices []string // bus ids it is about; none: the host
	PID     int      // process it is about; 0: none
	Short   string   // under a chart: "182034 started"
	Text    string   // in the log: a sentence, safe for a terminal
}

// About reports whether the event concerns a device; those of the host concern all.
func (e *Event) About(busID string) bool {
	for _, d := range e.Devices {
		if d == busID {
			return true
		}
	}
	return len(e.Devices) == 0
}

// Detector compares each snapshot with the one before. The zero Detector
// makes no events of the first snapshot.
type Detector struct{ prev *model.Snapshot }

// Next returns what happened since the last snapshot.
func (d *Detector) Next(s *model.Snapshot) []Event {
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
	events   []Event
}

// origin notes when ttmond takes over from our own reading, or the other way.
func (c *comparison) origin() {
	switch {
	case c.old.Source == c.now.Source:
	case c.now.Source == model.Daemon:
		c.add(Source, words.Info, nil, "ttmond", "ttmond answers: it sees every user's memory")
	case c.old.Source == model.Daemon:
		c.add(Source, words.Warning, nil, "no ttmond", "ttmond does not answer any more: the host is read directly")
	}
}

func (c *comparison) add(k Kind, l words.Level, devices []string, short, text string) {
	c.events = append(c.events, Event{At: c.now.Time, Kind: k, Level: l, Devices: devices, Short: short, Text: text})
}
