package eventlog

import "time"

// Event is one thing that happened. The tag see is as in model.Process; where processes
// are hidden, an event with Process is not sent at all.
type Event struct {
	Seq   uint64    `json:"seq"` // from 1, without gaps as long as the log is kept
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind" see:"all"`  // as in view/event, and "alert", "ttmond"
	Level string    `json:"level" see:"all"` // info, warning or critical
	// Devices are the bus ids it is about; none: the host.
	Devices []string `json:"devices,omitempty" see:"all"`
	Short   string   `json:"short,omitempty" see:"proc"` // for under a chart
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
	From *Origin `json:"from,omitempty" see:"all"`
}

// Origin is an event's place in the log of another daemon.
type Origin struct {
	Log string `json:"log"`
	Seq uint64 `json:"seq"`
}

// Levels.
const (
	Info     = "info"
	Warning  = "warning"
	Critical = "critical"
)

// Kinds that no comparison of snapshots finds.
const (
	KindAlert  = "alert"
	KindNoRoom = "no_room" // a request for device memory failed
	KindTTMond = "ttmond"  // the daemon about itself
)
