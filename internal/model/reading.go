package model

import "fmt"

// Status reports whether a Reading holds a value, and if not, why not.
type Status uint8

// The zero Status is Absent, so that a field that was not filled in is never
// mistaken for a measured zero.
const (
	Absent      Status = iota // driver, firmware or board does not offer it
	Known                     // the value holds
	Denied                    // it exists, and we may not read it
	Resetting                 // the chip is in its reset window (ENODATA)
	Lost                      // the device is gone (ENODEV)
	Hung                      // the chip or its firmware does not answer
	Stale                     // too old to be shown as current
	Implausible               // read, but impossible: a sentinel or a wrap
	Unsupported               // in a layout or version we do not know
	Pending                   // needs a second sample (rates, CPU share)
)

var statusWords = [...]string{
	Absent: "absent", Known: "known", Denied: "denied", Resetting: "resetting",
	Lost: "lost", Hung: "hung", Stale: "stale", Implausible: "implausible",
	Unsupported: "unsupported", Pending: "pending",
}

func (s Status) String() string {
	if int(s) < len(statusWords) {
		return statusWords[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// ParseStatus is the inverse of String; ok is false for an unknown word.
func ParseStatus(word string) (s Status, ok bool) {
	for i, w := range statusWords {
		if w == word {
			return Status(i), true
		}
	}
	return Absent, false
}

// Reading is a value, or the reason there is none. The zero Reading is absent.
type Reading[T any] struct {
	V       T // holds only if Status is Known
	Status  Status
	Nominal bool   // V comes from the board catalogue, not from the chip
	Why     string // for a missing value: the reason, as the end of a sentence
}

// Value is a known reading.
func Value[T any](v T) Reading[T] { return Reading[T]{V: v, Status: Known} }

// NominalValue is a catalogue figure standing in for one the chip did not give.
func NominalValue[T any](v T) Reading[T] {
	return Reading[T]{V: v, Status: Known, Nominal: true}
}

// Missing is a reading without a value. Why may be empty where the status says it all.
func Missing[T any](s Status, why string) Reading[T] {
	if s == Known {
		panic("BUG: a missing reading cannot be known")
	}
	return Reading[T]{Status: s, Why: why}
}

// Get returns the value and whether it holds.
func (r Reading[T]) Get() (T, bool) { return r.V, r.Status == Known }

// Known reports whether the reading holds a value.
func (r Reading[T]) Known() bool { return r.Status == Known }

// Reason says why there is no value: "absent: the driver offers no fan on
// wormhole", or just "denied". It is empty for a known reading.
func (r Reading[T]) Reason() string {
	switch {
	case r.Status == Known:
		return ""
	case r.Why == "":
		return r.Status.String()
	default:
		return r.Status.String() + ": " + r.Why
	}
}

// As carries the status and reason of r over to a reading of another type.
// It is for missing readings only.
func As[U, T any](r Reading[T]) Reading[U] { return Missing[U](r.Status, r.Why) }

// Map applies f to a known value and passes a missing one on.
func Map[T, U any](r Reading[T], f func(T) U) Reading[U] {
	if !r.Known() {
		return As[U](r)
	}
	return Reading[U]{V: f(r.V), Status: Known, Nominal: r.Nominal}
}
