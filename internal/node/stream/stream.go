// Package stream is the contract between ttmond and those who follow it: the
// frames of GET /v1/stream, and the types in them. Both ends import it.
//
// A follower names the last event that it has, gets those after it, and then
// every snapshot and event as it is made. Each frame has a kind and a length, so
// that a follower passes over kinds that a newer ttmond sends.
//
//	hello 187
//	{"stream":1,"version":"0.6.0","instance":"…","log":"…","first":1,"last":311}
//	event 310 …
//
// Events are numbered without gaps, and ttmond keeps the last of them on disk
// (package backlog): a follower that was away resumes where it was.
package stream

import (
	"time"
)

// Version is the version of the stream. Kinds and fields may be added to it; what
// an older follower would misread is another version.
const Version = 1

// Path is the call, below the API's socket.
const Path = "/v1/stream"

// Query is what a follower has, and wants.
type Query struct {
	Log   string `param:"log" help:"the log that after counts in"`
	After uint64 `param:"after" help:"number of the last event that the follower has"`
	Only  string `param:"only" help:"events or snapshots"` // both where it is left out
}

// Values of Query.Only. A follower that waits for its disk with each event asks
// for both on connections of their own.
const (
	OnlyEvents    = "events"
	OnlySnapshots = "snapshots"
)

// Kind is the kind of a frame.
type Kind string

// The kinds.
const (
	KindHello    Kind = "hello"    // Hello; the first frame
	KindState    Kind = "state"    // State; before each snapshot
	KindSnapshot Kind = "snapshot" // ttmon.snapshot/1, as the follower's user may see it
	KindEvent    Kind = "event"    // model.Event, with its number
)

// Hello begins a stream.
type Hello struct {
	Stream   int    `json:"stream"` // Version
	Version  string `json:"version"`
	Instance string `json:"instance"` // of this ttmond process
	// Log names the numbering of events; another name is another log, whose
	// numbers begin again.
	Log string `json:"log"`
	// First and Last are the events that are kept; First is Last+1 where there
	// are none.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// State is how ttmond is doing, and what it decides for those who show its
// snapshots to others.
type State struct {
	Interval float64 `json:"interval_s"` // between two snapshots
	Hiding   Hiding  `json:"hiding"`
	// Self are ttmond's own figures, for /metrics.
	Self Self `json:"self"`
}

// Every is the time between two snapshots.
func (s *State) Every() time.Duration { return time.Duration(s.Interval * float64(time.Second)) }

// Hiding is how the host's /proc hides processes from other users.
type Hiding struct {
	Level int `json:"level"` // the hidepid option: 0 shows all, 1 hides what is inside, 2 and 4 hide the process
	GID   int `json:"gid"`   // members of this group see everything; -1 for none
}
