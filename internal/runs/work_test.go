package runs

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// TestBusyOfSeveral: what is not known of a chip or a device makes the figure of the
// whole a lower bound.
func TestBusyOfSeveral(t *testing.T) {
	work := func(chip string, seconds float64, bound model.Bound, cause, pending model.WorkCause) Work {
		return Work{Chip: chip, Busy: seconds, Bound: bound.String(), Cause: cause, Pending: pending}
	}
	exact := work("1", 90, model.Exact, "", "")
	device := func(index int, list ...Work) Device { return Device{Index: index, Open: 100, Work: list} }
	partial := device(1)
	partial.Partial = model.WorkOtherChip
	for name, c := range map[string]struct {
		devices []Device
		ratio   float64
		bound   model.Bound
		cause   model.WorkCause
	}{
		"one":                          {[]Device{device(0, exact)}, 0.9, model.Exact, ""},
		"both":                         {[]Device{device(0, exact), device(1, work("2", 10, model.Exact, "", ""))}, 0.5, model.Exact, ""},
		"nothing of the second":        {[]Device{device(0, exact), device(1)}, 0.45, model.AtLeast, model.WorkOtherProcess},
		"and why":                      {[]Device{device(0, exact), partial}, 0.45, model.AtLeast, model.WorkOtherChip},
		"the second is silent":         {[]Device{device(0, exact), device(1, work("2", 0, model.Exact, "", model.WorkSilent))}, 0.45, model.AtLeast, model.WorkSilent},
		"the second was never open":    {[]Device{device(0, exact), {Index: 1}}, 0.9, model.Exact, ""},
		"chips behind no device":       {[]Device{device(0, exact), device(-1)}, 0.9, model.Exact, ""},
		"another chip is silent":       {[]Device{device(0, exact, work("2", 0, model.Exact, "", model.WorkSilent))}, 0.9, model.AtLeast, model.WorkSilent},
		"another chip lost records":    {[]Device{device(0, exact, work("2", 5, model.AtLeast, model.WorkRecordsLost, ""))}, 0.9, model.AtLeast, model.WorkRecordsLost},
		"nothing and records are lost": {[]Device{device(0, work("2", 0, model.AtLeast, model.WorkRecordsLost, ""))}, -1, model.Exact, ""},
		"nothing of any":               {[]Device{device(0), device(1)}, -1, model.Exact, ""},
	} {
		r := Run{Devices: c.devices}
		b, known := r.Busy()
		if known != (c.ratio >= 0) || known && b.Ratio != c.ratio || b.Bound != c.bound || b.Cause != c.cause {
			t.Errorf("%s: %+v, known %v", name, b, known)
		}
	}
}
