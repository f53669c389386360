// Package launches is every program that ran on the chips of processes, one by
// one.
//
// Its place in the flow: source/uprobe keeps the last ones while a client
// follows, ttmond's API sends them as lines of JSON, ttmon record --programs
// writes them to a recording, and internal/cli/export makes slices of them.
//
// The programs of a process on a chip are numbered, so a client that was too slow,
// or that was disconnected, knows by the next number how many it missed.
//
// A length is by the chip's own clock. A start is that clock laid on the host's: a
// record arrives some time after its program ended, and how long it took is not
// known. The soonest arrival is nearest to the truth, so a start is late by as long
// as the soonest record took, and off by a tenth of a millisecond more at most.
// Programs that do not overlap on the chip do not overlap here.
package launches

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Program is one that ran on a chip.
type Program struct {
	Start  int64  // Unix ns
	Length int64  // ns
	Name   string // of the operation; empty: not known
}

// End is when it ended.
func (p *Program) End() int64 { return p.Start + p.Length }

// Batch are programs of a process that one chip reported one after the other.
// Without any it says that those up to N are missing.
type Batch struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks,omitempty"` // of the process; 0: not known yet
	Process    string `json:"process,omitempty"`     // as the kernel names it
	Chip       uint64 `json:"chip,omitempty"`        // its number; 0: not known
	Number     uint32 `json:"number"`                // that the process has for the chip
	// N is the number of the first program, from 1; without any, of the next one.
	N uint64 `json:"n"`
	// From is the number that the client's first program would have had: what
	// ran before, it did not ask for.
	From uint64 `json:"from,omitempty"`
	// Lost is how many programs of the process ttmond could not read so far, on
	// any of its chips.
	Lost     uint64    `json:"lost,omitempty"`
	Programs []Program `json:"-"`
}

// Message is what a client receives at once: a batch, or UpTo.
type Message struct {
	Batch *Batch
	// UpTo is a Unix time in ns: what was reported before has been sent.
	UpTo int64
}

// line is a line of JSON. Programs are [ns after the end of the one before, length,
// name]: there may be a hundred thousand a second. The first counts from time.
type line struct {
	*Batch
	Time     int64      `json:"time,omitempty"`
	Names    []string   `json:"names,omitempty"`
	Programs [][3]int64 `json:"programs,omitempty"`
	UpTo     int64      `json:"up_to,omitempty"`
}

// Append appends a message as a line of JSON.
func Append(dst []byte, m *Message) ([]byte, error) {
	b := m.Batch
	if b == nil {
		return fmt.Appendf(dst, "{\"up_to\":%d}\n", m.UpTo), nil
	}
	names := NewNames(b.Programs)
	x := line{Batch: b, Names: names.List}
	if len(b.Programs) > 0 {
		x.Time = b.Programs[0].Start
	}
	head, err := json.Marshal(&x)
	if err != nil {
		return dst, fmt.Errorf("encoding programs: %w", err)
	}
	dst = append(dst, head[:len(head)-1]...)
	dst = append(dst, `,"programs":[`...)
	last := x.Time
	for i := range b.Programs {
		p := &b.Programs[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), p.Start-last, 10)
		dst = strconv.AppendInt(append(dst, ','), p.Length, 10)
		dst = strconv.AppendInt(append(dst, ','), int64(names.Index(p.Name)), 10)
		dst = append(dst, ']')
		last = p.End()
	}
	return append(dst, "]}\n"...), nil
}

// Parse reads a line. What it does not know it passes over.
func Parse(text []byte) (m Message, err error) {
	var x line
	if err := json.Unmarshal(text, &x); err != nil {
		return m, fmt.Errorf("a line about programs: %w", err)
	}
	if m.UpTo = x.UpTo; x.Batch == nil && len(x.Programs) == 0 {
		return m, nil
	}
	if x.Batch == nil || x.N == 0 || x.From > x.N {
		return m, fmt.Errorf("a line about programs: they have no number")
	}
	m.Batch = x.Batch
	at := x.Time
	for _, p := range x.Programs {
		start, ok := after(at, p[0], p[1])
		if !ok || p[2] < 0 || p[2] >= int64(len(x.Names)) {
			return m, fmt.Errorf("a line about programs: %v makes no sense", p)
		}
		m.Batch.Programs = append(m.Batch.Programs, Program{Start: start, Length: p[1], Name: x.Names[p[2]]})
		at = start + p[1]
	}
	return m, nil
}

// maxTime is a time that no program reaches, in Unix ns.
const maxTime = math.MaxInt64 / 4

// after is a time so long after another, from which on something lasts; ok is false
// where no time can be meant.
func after(at, pause, length int64) (start int64, ok bool) {
	if at < 0 || at > maxTime || pause < -maxTime || pause > maxTime || length < 0 || length > maxTime {
		return 0, false
	}
	start = at + pause
	return start, start >= 0 && start+length <= maxTime
}

// Names are the different names of programs, each once.
type Names struct {
	List  []string
	index map[string]int
}

// NewNames collects the names of some programs.
func NewNames(list []Program) *Names {
	n := &Names{index: map[string]int{}}
	for i := range list {
		if _, known := n.index[list[i].Name]; !known {
			n.index[list[i].Name] = len(n.List)
			n.List = append(n.List, list[i].Name)
		}
	}
	return n
}

// Index is where a name is in the list.
func (n *Names) Index(name string) int { return n.index[name] }
