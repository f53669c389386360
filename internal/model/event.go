package model

import (
	"slices"
	"time"
)

// Event is one thing that happened. The tag see is as in Process; where processes
// are hidden, an event with Process is not sent at all.
type Event struct {
	Seq   uint64    `json:"seq"` // from 1, without gaps as long as the log is kept
	Time  time.Time `json:"time"`
	Kind  EventKind `json:"kind" see:"all"`
	Level Level     `json:"level"`
	// Devices are the bus ids it is about; none: the host.
	Devices []string `json:"devices,omitempty" see:"all"`
	Short   string   `json:"short,omitempty" see:"proc"` // for under a chart: "182034 started"
	Text    string   `json:"text" see:"proc"`            // a sentence, safe for a terminal
	// Process tells that the text names a process, which not everybody may see.
	Process bool `json:"process,omitempty"`
	// PID is the process it is about; 0: none. It is set only where Process is.
	PID int `json:"pid,omitempty"`
	// Values are the figures of each device at that moment, by bus id and
	// field of the metric table, in the JSON contract's units.
	Values map[string]map[string]float64 `json:"values,omitempty"`
	// Bounds say how those of them are to be read that are not exact: at_least
	// or unsure.
	Bounds map[string]map[string]string `json:"bounds,omitempty"`
	// Volatile: the log could not be written; a crash forgets the event.
	Volatile bool `json:"volatile,omitempty"`
	// Failure names the record of a failed allocation that it is about: ttmon why.
	Failure string `json:"failure,omitempty" see:"proc"`
	// From is where the event was taken from; nil: it was found here.
	From *EventOrigin `json:"from,omitempty" see:"all"`
}

// EventOrigin is an event's place in the log of another daemon.
type EventOrigin struct {
	Log string `json:"log"`
	Seq uint64 `json:"seq"`
}

// About reports whether the event concerns a device; those of the host concern all.
func (e *Event) About(busID string) bool {
	return len(e.Devices) == 0 || slices.Contains(e.Devices, busID)
}

// EventKind is what sort of thing happened. The set is that of EventKinds.
type EventKind string

// The kinds of events.
const (
	EventStarted  EventKind = "started"
	EventGone     EventKind = "gone"
	EventDied     EventKind = "died"
	EventState    EventKind = "state"
	EventAppeared EventKind = "appeared"
	EventRemoved  EventKind = "removed"
	EventThrottle EventKind = "throttle"
	EventTripped  EventKind = "tripped"
	EventLink     EventKind = "link"
	EventEthernet EventKind = "ethernet"
	EventLog      EventKind = "log"
	EventSource   EventKind = "source"
	EventNoRoom   EventKind = "no_room"
	EventAlert    EventKind = "alert"
	EventTTMond   EventKind = "ttmond"
	EventDamaged  EventKind = "damaged"
)

// EventRow is all that is said about a kind of event.
type EventRow struct {
	Kind EventKind
	When string // in the documentation
	// Process: the text names a process, which not everybody may see.
	Process bool
}

// EventKinds has a row for each kind, in the order of the documentation.
var EventKinds = []EventRow{
	{Kind: EventStarted, When: "a process began to use devices", Process: true},
	{Kind: EventGone, When: "it stopped using all of them", Process: true},
	{Kind: EventDied, When: "it left memory accounted behind", Process: true},
	{Kind: EventState, When: "a device changed its state"},
	{Kind: EventAppeared, When: "a device came"},
	{Kind: EventRemoved, When: "a device went"},
	{Kind: EventThrottle, When: "a device became hot or throttled, or recovered"},
	{Kind: EventTripped, When: "a device shut itself down for heat"},
	{Kind: EventLink, When: "the PCIe link became slower, or recovered"},
	{Kind: EventEthernet, When: "an Ethernet link went down, came up or trained again"},
	{Kind: EventLog, When: "the driver or a chip's firmware wrote into the kernel's log"},
	{Kind: EventSource, When: "ttmond, which the snapshots come from, went or came back"},
	{Kind: EventNoRoom, When: "a request for device memory failed"},
	{Kind: EventAlert, When: "an alert began to fire, or is over"},
	{Kind: EventDamaged, When: "a part of a recording is damaged"},
	{Kind: EventTTMond, When: "a daemon says something about itself"},
}

// Row is what is said about a kind; of one that is not known, nothing but its name.
func (k EventKind) Row() EventRow {
	if i := slices.IndexFunc(EventKinds, func(r EventRow) bool { return r.Kind == k }); i >= 0 {
		return EventKinds[i]
	}
	return EventRow{Kind: k}
}
