package runs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		t.Run(name, func(t *testing.T) {
			r := Run{Devices: c.devices}
			b, known := r.Busy()
			if known != (c.ratio >= 0) || known && b.Ratio != c.ratio || b.Bound != c.bound || b.Cause != c.cause {
				t.Errorf("%+v, known %v", b, known)
			}
		})
	}
}

// TestGaps: the longest gaps of all chips are listed together; a gap in which
// another process may have worked is doubtful.
func TestGaps(t *testing.T) {
	gap := func(seconds float64) Gap {
		return Gap{Seconds: seconds, End: time.Unix(int64(seconds), 0), After: "matmul"}
	}
	work := func(chip string, cause model.GapCause, gaps ...Gap) Work {
		return Work{Chip: chip, Name: chip, Bound: "exact", Gap: 1, Gaps: gaps, GapsCause: cause}
	}
	for name, c := range map[string]struct {
		devices []Device
		want    []DeviceGap
		missing model.GapCause
	}{
		"two chips": {
			[]Device{{Index: 0, Work: []Work{work("L", "", gap(3), gap(1))}}, {Index: 4, Work: []Work{work("R", model.GapsLossy, gap(2))}}},
			[]DeviceGap{{gap(3), 0, "L", ""}, {gap(2), 4, "R", model.GapsLossy}, {gap(1), 0, "L", ""}},
			"",
		},
		"two processes on a chip": {
			[]Device{{Index: 0, Work: []Work{work("L", "", gap(3)), {PID: 5, Chip: "L", Name: "L", Bound: "exact", Gap: 1, Gaps: []Gap{gap(2)}}, work("R", "", gap(1))}}},
			[]DeviceGap{{gap(3), 0, "L", model.GapsProcesses}, {gap(2), 0, "L", model.GapsProcesses}, {gap(1), 0, "R", ""}},
			"",
		},
		"another process reports nothing": {
			[]Device{{Index: 0, Partial: model.WorkOtherProcess, Work: []Work{work("L", "", gap(3))}}},
			[]DeviceGap{{gap(3), 0, "L", model.GapsOtherProcess}},
			"",
		},
		"one process, twice": {
			[]Device{{Index: 0, Work: []Work{work("L", "", gap(3)), {PID: 0, Chip: "L", Name: "L", Bound: "exact", Gap: 1}}}},
			[]DeviceGap{{gap(3), 0, "L", ""}},
			model.GapsNotKept,
		},
		"kept by an older ttmon":  {[]Device{{Index: 0, Work: []Work{work("L", "")}}}, nil, model.GapsNotKept},
		"a process without a gap": {[]Device{{Index: 0, Work: []Work{{Chip: "L"}}}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run{Devices: c.devices}
			if diff := cmp.Diff(c.want, r.Gaps()); diff != "" || r.GapsMissing() != c.missing {
				t.Errorf("missing %q, want %q\n%s", r.GapsMissing(), c.missing, diff)
			}
		})
	}
}
