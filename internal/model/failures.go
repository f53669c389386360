package model

import "time"

// Failures are the requests of a process for device memory that failed, as far as
// ttmond saw them.
type Failures struct {
	Count uint64
	Last  time.Time // when the last one failed; zero: none did
	ID    string    // of the record of the last one: ttmon why
	Pool  string    // that the last one asked for
	// Clash: the last one was a program whose circular buffers reach into a buffer
	// of L1.
	Clash bool
}
