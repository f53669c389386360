// Package firmware decides when the telemetry table of a chip is read, and keeps
// what it said. It is the one source that touches chips at all: it is off unless
// ttmond was told otherwise.
//
// After each snapshot Sample starts a reader (chipread) for every chip whose sample
// is due and that it is harmless to read now; Fill adds the last sample to the
// device while the next snapshot is made. A reader is a process of its own that
// is never waited for: one that has not answered in time costs its own chip's
// values, until the chip was reset, and nothing else.
package firmware
