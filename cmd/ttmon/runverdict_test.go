package main

import (
	"errors"
	"testing"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// What a check finds is the exit code, unless the program itself failed; what cannot be
// checked has not passed.
func TestRunVerdict(t *testing.T) {
	leaks, steps, room, limit := checked{leak: &runreport.LeakLimit{}}, checked{leak: &runreport.LeakLimit{Kept: true}}, checked{noRoom: true}, checked{limits: map[model.Pool]uint64{model.DRAM: 1024}}
	ran := func(p runs.Pool, l runs.ProcessLedger) runreport.Report {
		pools := map[string]runs.Pool{"dram": p}
		return runreport.Report{Method: runreport.Ledger, Run: runs.Run{Pools: pools, Processes: []runs.Process{{Ledger: &l}}, Devices: []runs.Device{{ChipID: "7", Pools: pools}}}}
	}
	left := runs.Pool{PeakBound: "exact", Blocks: &runs.Blocks{Left: runs.Amount{Bytes: 64, Blocks: 1}}}
	grown := runs.Pool{PeakBound: "exact", Blocks: &runs.Blocks{Left: left.Blocks.Left, Grown: left.Blocks.Left}}
	freed := runs.Pool{Peak: 64, PeakBound: "exact", Blocks: &runs.Blocks{}}
	failing, full := ran(left, runs.ProcessLedger{}), ran(freed, runs.ProcessLedger{})
	code := 3
	failing.Run.End.Code = &code
	full.Failures = []*failure.Record{{}}
	for name, c := range map[string]struct {
		checks checked
		report runreport.Report
		code   int
	}{
		"nothing is checked":           {checked{}, ran(left, runs.ProcessLedger{}), 0},
		"the program failed":           {leaks, failing, 3},
		"a leak":                       {leaks, ran(left, runs.ProcessLedger{}), exitLeak},
		"weights":                      {steps, ran(left, runs.ProcessLedger{}), 0},
		"what grew":                    {steps, ran(grown, runs.ProcessLedger{}), exitLeak},
		"no leak":                      {leaks, ran(freed, runs.ProcessLedger{}), 0},
		"no leak, and events missing":  {leaks, ran(freed, runs.ProcessLedger{Lost: 1}), exitOpen},
		"a leak, and events missing":   {leaks, ran(left, runs.ProcessLedger{Lost: 1}), exitLeak},
		"no room":                      {room, full, exitFull},
		"within the limit":             {limit, ran(freed, runs.ProcessLedger{}), 0},
		"above the limit":              {limit, ran(runs.Pool{Peak: 2048, PeakBound: "at_least"}, runs.ProcessLedger{}), exitMax},
		"at least, and within it":      {limit, ran(runs.Pool{Peak: 64, PeakBound: "at_least"}, runs.ProcessLedger{}), exitOpen},
		"at least, and at most":        {limit, ran(runs.Pool{Peak: 64, PeakBound: "at_least", PeakMost: 128}, runs.ProcessLedger{}), 0},
		"sampled":                      {leaks, runreport.Report{Method: runreport.Sampled}, exitOpen},
		"a device was open":            {limit, runreport.Report{Method: runreport.Opened}, exitOpen},
		"no device":                    {limit, runreport.Report{Method: runreport.Nothing}, 0},
		"libttmon could not":           {limit, runreport.Report{Method: runreport.Nothing, Complaints: []string{"creating a ledger"}}, exitOpen},
		"L1 per core":                  {leaks, ran(freed, runs.ProcessLedger{PerCoreL1: true}), exitOpen},
		"L1 per core, and DRAM is all": {limit, ran(freed, runs.ProcessLedger{PerCoreL1: true}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.report.Check(c.checks.limits)
			got := 0
			if e, ok := errors.AsType[*exit.Error](c.checks.verdict(&c.report)); ok {
				got = e.Code
			}
			if got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}
