package words

import (
	"github.com/ttmon/ttmon/internal/model"
)

// Nothing stands where there is no value: no job, no limit, no rate yet, nothing that
// driver, firmware or program offers. Where a value was to be expected, the reason is
// beside it.
const Nothing = "–"

// Missing is the word for a reading that has no value. The full reason is
// said elsewhere: in a sentence below, in -q and in JSON.
func Missing(s model.Status) string {
	switch s {
	case model.Denied:
		return "denied"
	case model.Resetting:
		return "reset"
	case model.Lost:
		return "lost"
	case model.Hung:
		return "hung"
	case model.Stale:
		return "stale"
	case model.Implausible:
		return "invalid"
	default:
		return Nothing
	}
}

// NoLine is said where it is not known which line of a program made a block.
const NoLine = "line not known"

// Reading says a value with say, or the word for why there is none.
func Reading[T any](r model.Reading[T], say func(T) string) string {
	if v, ok := r.Get(); ok {
		return say(v)
	}
	return Missing(r.Status)
}

// Foreign says a string that came from outside (a name, a command line, a
// version), escaped, or the word for why there is none.
func Foreign(r model.Reading[string]) string { return Reading(r, Escape) }
