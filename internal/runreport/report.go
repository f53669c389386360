package runreport

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
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

// Report is the account of a run. Bytes are those of one chip over all its
// banks; times are seconds after the start.
type Report struct {
	Schema   string    `json:"schema"`
	Command  []string  `json:"command"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	ExitCode int       `json:"exit_code"`
	Signal   string    `json:"signal,omitempty"` // that ended the program
	Method   Method    `json:"method"`
	Releases []string  `json:"releases"` // of tt-metal, as far as known
	// Complaints are what the library said of itself: why there is no ledger.
	Complaints []string  `json:"complaints,omitempty"`
	Chips      []Chip    `json:"chips"` // all processes together
	Processes  []Process `json:"processes"`
	// Failures are requests that failed, by the time of the last one, newest last.
	Failures []*failure.Record `json:"failures,omitempty"`
	// Exceeded are limits of --max that were.
	Exceeded []Excess `json:"exceeded,omitempty"`
}

// Process is one process of the run.
type Process struct {
	PID     int    `json:"pid"` // in its own namespace
	Name    string `json:"name"`
	Release string `json:"release,omitempty"`
	Running bool   `json:"running,omitempty"` // when the program itself had ended
	Killed  bool   `json:"killed,omitempty"`  // it did not come to its end in good order
	Stacks  bool   `json:"stacks,omitempty"`  // call sites were recorded
	Lost    uint64 `json:"lost,omitempty"`    // events that found no room: figures are too low
	Unsure  bool   `json:"unsure,omitempty"`  // events contradicted each other, or lists were found late
	// PerCoreL1 says that an allocator of it kept L1 per core (HYBRID): there is no
	// figure of it, nor of requests that it refused.
	PerCoreL1 bool   `json:"per_core_l1,omitempty"`
	Chips     []Chip `json:"chips"`
}

// Chip is the memory of one chip.
type Chip struct {
	// ID is the chip's unique id; all ones with Unknown where it could not be told.
	ID      uint64 `json:"id,string"`
	Unknown bool   `json:"unknown,omitempty"`
	Logical int    `json:"logical"`          // the number that the program gives it
	Device  *int   `json:"device,omitempty"` // kernel index, where it is one of this host
	Board   string `json:"board,omitempty"`
	Name    string `json:"name,omitempty"` // of the chip on its board: L, R
	Pools   []Pool `json:"pools"`
	// Work is what ran on it; nil: the run was sampled from outside.
	Work *Work `json:"work,omitempty"`
}

// Pool is one pool of a chip.
type Pool struct {
	Pool     model.Pool `json:"-"`
	PoolName string     `json:"pool"`
	Peak     uint64     `json:"peak_bytes"`
	// Bound of the peak: at least, where several processes or allocators were added
	// up, or events were lost; unsure, where it is tt-metal's own accounting, which
	// counts one thread only.
	Bound    model.Bound `json:"peak_bound"`
	PeakAt   float64     `json:"peak_at_s"`
	Capacity uint64      `json:"capacity_bytes,omitempty"` // of the allocator; 0: not known
	Total    Amount      `json:"allocated"`                // ever
	Held     Amount      `json:"held"`                     // by processes that run on
	Left     Amount      `json:"left"`                     // by those that ended, or closed the device
	// LeftUnknown says that nothing is known of what was left: samples do not tell.
	LeftUnknown bool    `json:"left_unknown,omitempty"`
	Failed      uint64  `json:"failed,omitempty"`  // requests that found no room
	AtPeak      []Place `json:"at_peak,omitempty"` // largest first
	LeftBy      []Place `json:"left_by,omitempty"`
	// Grown is the part of what was left that came step by step while the program
	// worked; the rest was alive when the device was closed, which ttnn releases.
	Grown  Amount  `json:"grown,omitzero"`
	Places []Place `json:"-"` // all that ever allocated, for profiles
}

// PeakFigure is the peak with its bound.
func (p *Pool) PeakFigure() model.Bytes { return model.BoundBytes(p.Peak, p.Bound) }

// LeftFigure is what was left, where that is known.
func (p *Pool) LeftFigure() model.Bytes {
	if p.LeftUnknown {
		return model.NoBytes(model.Absent)
	}
	return model.ExactBytes(p.Left.Bytes)
}

// atLeast notes that the peak may have been higher, if it may.
func (p *Pool) atLeast(may bool) {
	if may {
		p.Bound = max(p.Bound, model.AtLeast)
	}
}

// Amount is memory in blocks.
type Amount struct {
	Bytes  uint64 `json:"bytes"`
	Blocks uint64 `json:"blocks"`
}

func (a *Amount) add(b Amount) {
	a.Bytes += b.Bytes
	a.Blocks += b.Blocks
}

// Place is a place in the program: a tag, a stack, or both.
type Place struct {
	Tag     string             `json:"tag,omitempty"`
	Stack   []ledgerfile.Frame `json:"stack,omitempty"` // innermost first
	Amount                     // at the peak, or left
	Largest uint64             `json:"largest_bytes,omitempty"` // of the blocks that were left
	Oldest  float64            `json:"oldest_at_s,omitempty"`   // when the oldest of them was allocated
	// Quarters says how many of them were allocated in each quarter of the time from
	// the oldest one to the end; Grew that they came step by step.
	Quarters []uint64 `json:"quarters,omitempty"`
	Grew     bool     `json:"grew,omitempty"`
	Held     Amount   `json:"-"` // now, for profiles
	Total    Amount   `json:"-"` // ever, for profiles
	line     *Frame   // that tells it from others; nil: not compared yet
}

// Frame is a line of code, or a place in a library.
type Frame = ledgerfile.Frame

// Excess is a limit that was passed.
type Excess struct {
	ChipID uint64     `json:"chip,string"`
	Pool   model.Pool `json:"-"`
	Name   string     `json:"pool"`
	Peak   uint64     `json:"peak_bytes"`
	Limit  uint64     `json:"limit_bytes"`
}

// Left sums what was left behind on all chips.
func (r *Report) Left() (sum Amount) {
	for i := range r.Chips {
		for j := range r.Chips[i].Pools {
			sum.add(r.Chips[i].Pools[j].Left)
		}
	}
	return sum
}

// Check notes which limits were passed on any chip.
func (r *Report) Check(limits map[model.Pool]uint64) {
	for i := range r.Chips {
		for _, p := range r.Chips[i].Pools {
			if limit, ok := limits[p.Pool]; ok && p.Peak > limit {
				r.Exceeded = append(r.Exceeded, Excess{r.Chips[i].ID, p.Pool, p.PoolName, p.Peak, limit})
			}
		}
	}
}

// Judged reports whether leaks and limits can be told: not from samples, between
// which anything can happen.
func (r *Report) Judged() bool { return r.Method != Sampled }

// PerCoreL1 reports whether some process has no figure of L1, because its allocator
// kept it per core.
func (r *Report) PerCoreL1() bool {
	return slices.ContainsFunc(r.Processes, func(p Process) bool { return p.PerCoreL1 })
}

// Sort puts chips and pools into their order.
func (r *Report) Sort() { sortChips(r.Chips) }

// NameChip says which chip of this host an id stands for.
func (r *Report) NameChip(id uint64, device int, board, name string) {
	lists := [][]Chip{r.Chips}
	for i := range r.Processes {
		lists = append(lists, r.Processes[i].Chips)
	}
	for _, chips := range lists {
		for i := range chips {
			if c := &chips[i]; c.ID == id && !c.Unknown {
				c.Device, c.Board, c.Name = &device, board, name
			}
		}
	}
	for _, f := range r.Failures {
		for i := range f.Chips {
			if c := &f.Chips[i]; c.ID == id {
				c.Device, c.Board, c.Name = &device, board, name
			}
		}
	}
}
