// Package report holds what a self-test of ttmon found: rows with a verdict each.
// internal/cli/selftest makes it, views show it.
package report

import (
	"encoding/json"
	"time"
)

// Schema names the JSON of a Report. Fields are only added.
const Schema = "ttmon.selftest/1"

// Verdict is the outcome of one comparison.
type Verdict string

// The verdicts, from the best to the worst.
const (
	Right    Verdict = "right"    // both agree
	Bounded  Verdict = "bounded"  // ttmon marked its doubt (≥, ~), and the witness is within it
	Measured Verdict = "measured" // a cost: there is nothing to compare it with
	Unknown  Verdict = "unknown"  // cannot be compared here; Note has the reason
	Failed   Verdict = "failed"   // the user asked for it, and it could not be done; Note has the reason
	Wrong    Verdict = "wrong"    // they contradict each other
)

// Part is a group of rows.
type Part string

// The parts.
const (
	Host     Part = "host"
	Devices  Part = "devices"
	Users    Part = "users"    // who has a device open
	Regions  Part = "regions"  // tt-metal's accounting in shared memory
	Official Part = "official" // Tenstorrent's tt-smi
	Program  Part = "program"  // a ttnn program that knows what it holds
	Harmless Part = "harmless"
	Cost     Part = "cost"
	Optional Part = "optional" // what would be known with parts that are off
)

// Parts lists them in the order in which they are shown.
func Parts() []Part {
	return []Part{Host, Devices, Users, Regions, Official, Program, Harmless, Cost, Optional}
}

// Row is one comparison.
type Row struct {
	Part    Part    `json:"part"`
	What    string  `json:"what"`
	Device  *int    `json:"device,omitempty"` // index, where it is about one device
	Group   string  `json:"group,omitempty"`  // of rows that are one line where they agree
	Ours    string  `json:"ttmon"`
	Witness string  `json:"witness"`
	By      string  `json:"by"` // who the witness is
	Verdict Verdict `json:"verdict"`
	Note    string  `json:"note,omitempty"`
}

// Report is the result of a self-test.
type Report struct {
	Schema    string    `json:"schema"`
	Version   string    `json:"version"` // of ttmon
	Time      time.Time `json:"time"`
	Seconds   float64   `json:"seconds"`
	Root      bool      `json:"root"`      // ran with root's rights
	Simulated bool      `json:"simulated"` // the boards do not exist
	Stage     Stage     `json:"stage"`
	Kernel    string    `json:"kernel,omitempty"`
	Driver    string    `json:"driver,omitempty"`
	Metal     string    `json:"tt_metal,omitempty"` // release of the program's tt-metal
	// ProgramOn is what the ttnn program ran on: a device, mock mode, a chip
	// simulator with its name; empty: no program was run.
	ProgramOn string  `json:"program_on,omitempty"`
	Boards    []Board `json:"boards"`
	Rows      []Row   `json:"rows"`
}

// Stage is what the figures were seen on.
type Stage string

// The stages, from the least to the most that they can show.
const (
	NoBoard       Stage = "no_board"
	Simulated     Stage = "simulated"      // ttmon-sim
	ChipSimulator Stage = "chip_simulator" // boards are not there; kernels run in a simulator of the chip
	Silicon       Stage = "silicon"
)

// Board counts boards of one kind.
type Board struct {
	Name     string `json:"name"`
	Firmware string `json:"firmware,omitempty"` // bundle; empty: not known, or several
	Count    int    `json:"count"`
}

// Count is how many rows have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Rows {
		if r.Rows[i].Verdict == v {
			n++
		}
	}
	return n
}

// JSON is the report for scripts.
func (r *Report) JSON() []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("BUG: a report that is no JSON: " + err.Error())
	}
	return b
}

// Add appends rows.
func (r *Report) Add(rows ...Row) { r.Rows = append(r.Rows, rows...) }
