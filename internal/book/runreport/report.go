package runreport

import (
	"slices"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the JSON of a Report. Fields are only added.
const Schema = "ttmon.run/1"

// Method is how the figures of a report were got.
type Method string

// The methods.
const (
	Ledger  Method = "libttmon"      // every allocation, by the library
	Sampled Method = "shared_memory" // sampled from outside
	Opened  Method = "opened"        // a device was open, no device memory was seen
	Nothing Method = "none"          // no use of a device was seen
)

// Report is the account of one `ttmon run`: the run as ttmon runs has it, how it was
// found out, and what it was held against.
type Report struct {
	Schema string `json:"schema"`
	Method Method `json:"method"`
	// Complaints are what the library said of itself: why there is no ledger.
	Complaints []string `json:"complaints,omitempty"`
	Run        runs.Run `json:"run"`
	// Failures are requests that failed, by the time of the last one, newest last.
	Failures []*failure.Record `json:"failures,omitempty"`
	// Exceeded are limits of --max that were; Uncertain are those that may have been.
	Exceeded  []Excess `json:"exceeded,omitempty"`
	Uncertain []Excess `json:"uncertain,omitempty"`
}

// Excess is a limit that a peak passed, or may have.
type Excess struct {
	Chip  string     `json:"chip"`
	Pool  model.Pool `json:"-"`
	Name  string     `json:"pool"`
	Peak  runs.Pool  `json:"-"`
	Bytes uint64     `json:"peak_bytes"`
	Bound string     `json:"peak_bound"`
	Limit uint64     `json:"limit_bytes"`
}

// Left sums what was left behind on all chips.
func (r *Report) Left() (sum runs.Amount) {
	for _, p := range r.Run.Pools {
		if p.Blocks != nil {
			sum.Add(p.Blocks.Left)
		}
	}
	return sum
}

// LeakLimit is what a run may leave behind.
type LeakLimit struct {
	Kept  bool   // what did not grow step by step may be left, and nothing else
	Bytes uint64 // otherwise: what may be left, whether it grew or not
}

// Leaks reports whether more was left behind than may be.
func (r *Report) Leaks(limit LeakLimit) bool {
	for _, p := range r.Run.Pools {
		if limit.Kept && p.Blocks != nil && p.Blocks.Grown.Blocks > 0 {
			return true
		}
	}
	return !limit.Kept && r.Left().Bytes > limit.Bytes
}

// Check notes which limits were passed on any chip, and of which that is not known.
func (r *Report) Check(limits map[model.Pool]uint64) {
	for _, c := range r.Run.Chips() {
		for _, pool := range model.Pools() {
			limit, limited := limits[pool]
			p, used := c.Pools[pool.String()]
			if !limited || !used {
				continue
			}
			x := Excess{c.ID, pool, pool.String(), p, p.Peak, p.PeakBound, limit}
			switch p.Within(limit) {
			case runs.Exceeded:
				r.Exceeded = append(r.Exceeded, x)
			case runs.Uncertain:
				r.Uncertain = append(r.Uncertain, x)
			case runs.Within:
			}
		}
	}
}

// Judged reports whether leaks and limits can be told: by ledgers, or of a program that
// used no device. Between samples anything can happen, and what a program did with a
// device that it had open, or where libttmon complains, is not known.
func (r *Report) Judged() bool {
	return r.Method == Ledger || r.Method == Nothing && len(r.Complaints) == 0
}

// PerCoreL1 reports whether some process has no figure of L1, because its allocator
// kept it per core.
func (r *Report) PerCoreL1() bool {
	return slices.ContainsFunc(r.Run.Processes, func(p runs.Process) bool { return p.Ledger != nil && p.Ledger.PerCoreL1 })
}

// LeaksKnown reports whether all that was left behind is in the figures. Of L1 that was
// kept per core it is not, and PerCoreL1 says so.
func (r *Report) LeaksKnown() bool {
	return !slices.ContainsFunc(r.Run.Processes, func(p runs.Process) bool { return p.Ledger != nil && (p.Ledger.Lost > 0 || p.Ledger.Unsure) })
}

// Unsure reports whether a process's ledger does not have all of its allocations.
func (r *Report) Unsure() bool {
	return !r.LeaksKnown() || r.PerCoreL1()
}

// Releases are those of tt-metal that the processes use, as far as known.
func (r *Report) Releases() (list []string) {
	for i := range r.Run.Processes {
		if l := r.Run.Processes[i].Ledger; l != nil && l.Release != "" && !slices.Contains(list, l.Release) {
			list = append(list, l.Release)
		}
	}
	return list
}
