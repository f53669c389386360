package runreport

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// What JUnit writes is XML, whatever a program calls its files and tags.
func TestJUnit(t *testing.T) {
	const nasty = "a<b>&\"c'\x00\xff\n"
	r := ranOn(runs.Pool{Peak: 4096, PeakBound: "exact", Blocks: &runs.Blocks{
		Left: runs.Amount{Bytes: 2048, Blocks: 2}, LeftBy: []runs.Place{{Tag: nasty, Amount: runs.Amount{Bytes: 2048, Blocks: 2}}},
	}})
	none := LeakLimit{}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(JUnit(r, Limits{Leak: &none, Pools: map[model.Pool]uint64{model.DRAM: 1024}}), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 2 || got.Failures != 2 || got.Skipped != 0 || got.Cases[0].Class != "memory.device0" || got.Cases[1].Name != "dram peak" {
		t.Errorf("%+v", got)
	}
	if want := "[a<b>&\"c'��\n] 2048 bytes in 2 blocks\n"; got.Cases[0].Failure.Text != want {
		t.Errorf("%q, want %q", got.Cases[0].Failure.Text, want)
	}
	r.Method = Sampled
	got.Cases = nil
	if err := xml.Unmarshal(JUnit(r, Limits{}), &got); err != nil || got.Skipped != 1 || got.Cases[0].Skipped == nil {
		t.Errorf("of samples: %v, %+v", err, got)
	}
	if err := xml.Unmarshal(JUnit(r, Limits{Pools: map[model.Pool]uint64{model.DRAM: 1024}}), &got); err != nil || got.Failures != 1 {
		t.Errorf("a sample above the limit: %v, %+v", err, got)
	}
}

// What could not be checked is a case that was skipped, not one that is missing.
func TestJUnitUnchecked(t *testing.T) {
	core := ranOn(runs.Pool{Peak: 100, PeakBound: "exact"})
	core.Run.Processes = []runs.Process{{Ledger: &runs.ProcessLedger{PerCoreL1: true}}}
	for name, c := range map[string]struct {
		report *Report
		pool   model.Pool
		want   string
	}{
		"a device was open": {&Report{Method: Opened}, model.DRAM, `tests="1" failures="0" skipped="1"`},
		"no device":         {&Report{Method: Nothing}, model.DRAM, `tests="0" failures="0" skipped="0"`},
		"L1 per core": {core, model.L1, `name="l1 peak">
    <skipped message="the program's allocator`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(JUnit(c.report, Limits{Pools: map[model.Pool]uint64{c.pool: 1024}})); !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

// ranOn is the account of a program that used the DRAM of one chip.
func ranOn(p runs.Pool) *Report {
	pools := map[string]runs.Pool{"dram": p}
	return &Report{Method: Ledger, Run: runs.Run{Pools: pools, Devices: []runs.Device{{ChipID: "7", Pools: pools}}}}
}

// A peak that may have been higher is not held against a limit as if it were all: the
// check is neither passed nor failed.
func TestUncertainLimit(t *testing.T) {
	for name, c := range map[string]struct {
		pool                runs.Pool
		exceeded, uncertain int
		junit               string
	}{
		"below":                     {runs.Pool{Peak: 100, PeakBound: "exact"}, 0, 0, `name="dram peak"></testcase>`},
		"above":                     {runs.Pool{Peak: 2000, PeakBound: "exact"}, 1, 0, `<failure message="peak of 2000 bytes, limit 1024">`},
		"at least, above":           {runs.Pool{Peak: 2000, PeakBound: "at_least"}, 1, 0, `<failure message="peak of 2000 bytes, limit 1024">`},
		"at least, below":           {runs.Pool{Peak: 100, PeakBound: "at_least"}, 0, 1, `<skipped message="peak of 100 bytes or more, limit 1024: whether it was passed is not known">`},
		"at least, and at most":     {runs.Pool{Peak: 100, PeakBound: "at_least", PeakMost: 1024}, 0, 0, `name="dram peak"></testcase>`},
		"at most, above":            {runs.Pool{Peak: 100, PeakBound: "at_least", PeakMost: 1025}, 0, 1, `<skipped message="peak of 100 bytes or more`},
		"too high or low, above it": {runs.Pool{Peak: 2000, PeakBound: "unsure"}, 0, 1, `<skipped message="peak of 2000 bytes or more`},
	} {
		t.Run(name, func(t *testing.T) {
			r, limits := ranOn(c.pool), map[model.Pool]uint64{model.DRAM: 1024}
			r.Check(limits)
			if len(r.Exceeded) != c.exceeded || len(r.Uncertain) != c.uncertain {
				t.Errorf("exceeded %+v, uncertain %+v", r.Exceeded, r.Uncertain)
			}
			if got := string(JUnit(r, Limits{Pools: limits})); !strings.Contains(got, c.junit) {
				t.Errorf("no %q in\n%s", c.junit, got)
			}
		})
	}
}

// What was left by a process of which events are missing may be more: no leak that is
// seen is no proof that there is none.
func TestUnknownLeaks(t *testing.T) {
	none := LeakLimit{}
	for name, c := range map[string]struct {
		ledger runs.ProcessLedger
		left   uint64
		want   string
	}{
		"all was seen":          {runs.ProcessLedger{}, 0, `name="dram left behind"></testcase>`},
		"events are missing":    {runs.ProcessLedger{Lost: 1}, 0, `<skipped message="allocations and frees are missing`},
		"it came late":          {runs.ProcessLedger{Unsure: true}, 0, `<skipped message="allocations and frees are missing`},
		"missing, and it leaks": {runs.ProcessLedger{Lost: 1}, 64, `<failure message="64 bytes in 1 blocks left behind">`},
	} {
		t.Run(name, func(t *testing.T) {
			r := ranOn(runs.Pool{Peak: 64, PeakBound: "exact", Blocks: &runs.Blocks{Left: runs.Amount{Bytes: c.left, Blocks: min(c.left, 1)}}})
			r.Run.Processes = []runs.Process{{Ledger: &c.ledger}}
			if got := string(JUnit(r, Limits{Leak: &none})); !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

// TestJUnitGrown: the file for CI tells what grew step by step from what was alive
// at the end.
func TestJUnitGrown(t *testing.T) {
	r := ranOn(runs.Pool{Blocks: &runs.Blocks{
		Left: runs.Amount{Bytes: 6144, Blocks: 6}, Grown: runs.Amount{Bytes: 4096, Blocks: 4},
		LeftBy: []runs.Place{{Tag: "cache", Grew: true, Amount: runs.Amount{Bytes: 4096, Blocks: 4}}, {Tag: "weights", Amount: runs.Amount{Bytes: 2048, Blocks: 2}}},
	}})
	none := LeakLimit{}
	got := string(JUnit(r, Limits{Leak: &none}))
	for _, want := range []string{
		`message="6144 bytes in 6 blocks left behind, of which 4096 bytes in 4 blocks grew step by step"`,
		"[cache] 4096 bytes in 4 blocks, grew step by step&#10;", "[weights] 2048 bytes in 2 blocks&#10;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
	r.Run.Devices[0].Pools["dram"].Blocks.Grown = runs.Amount{}
	if got := string(JUnit(r, Limits{Leak: &LeakLimit{Kept: true}})); strings.Contains(got, "<failure") {
		t.Errorf("what was allocated once is a leak:\n%s", got)
	}
}
