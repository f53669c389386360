// Package changes is what happens to the blocks of processes, as it happens.
//
// Its place in the flow: source/uprobe tells it, ttmond's API hands it on as
// lines of JSON, ttmon record takes it in.
//
// The changes of a process are numbered. Who missed some gets a State, all that
// holds by then, and sees by its number how many they were.
package changes

import (
	"encoding/json"
	"fmt"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// Kind is what happened.
type Kind uint8

// The kinds. Their numbers are part of the API.
const (
	Alloc   Kind = 1 // a block was allocated: address, bytes, bytes requested
	Free    Kind = 2 // it was freed: address
	Cleared Kind = 3 // all blocks of a list were
	Closed  Kind = 4 // a list is no more
	Defined Kind = 5 // a list is new, or something about it changed: Def
	Lost    Kind = 6 // events of the process were lost: so many in all, in Size
	Watched Kind = 7 // whether the process was watched from its start became known: Size is 0 if it was
	Ended   Kind = 8 // the process ended, or is not watched any more: Why
)

// Change is one of them.
type Change struct {
	N    uint64 // its number in the process, from 1
	Time int64  // Unix ns; never earlier than the one before
	PID  int
	Kind Kind
	List uint32
	// What the kind says.
	Addr, Size, Asked uint64
	Def               *List
	Why               string
}

// List is a list of blocks of a process.
type List struct {
	ID        uint32          `json:"id"`
	Allocator uint64          `json:"allocator"`
	Pool      string          `json:"pool"`
	Geometry  blocks.Geometry `json:"geometry"`
	Cut       uint64          `json:"cut,omitempty"`
	Late      bool            `json:"late,omitempty"` // it has blocks from before it was watched
	Chips     []uint64        `json:"chips"`
}

// Held is a list and what it holds.
type Held struct {
	List
	Blocks []blocks.Block `json:"blocks"`
}

// State is what a process holds, behind its change number N.
type State struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_ticks,omitempty"`
	Name    string `json:"name,omitempty"` // as the kernel has it
	Release string `json:"release,omitempty"`
	Late    bool   `json:"late,omitempty"` // it ran before it was watched
	Lost    uint64 `json:"lost_events,omitempty"`
	N       uint64 `json:"n"`
	// Missed are changes that the reader was not told, since it was too slow.
	Missed uint64 `json:"missed,omitempty"`
	Lists  []Held `json:"lists,omitempty"`
}

// Batch is one message to a reader: states first.
type Batch struct {
	States  []*State
	Changes []Change
	// UpTo is a Unix time in ns: what happened before it has been told.
	UpTo int64
}

// message is a line. Changes are [kind, ns after time, list, address, bytes,
// asked]: there are tens of thousands a second.
type message struct {
	State   *State      `json:"state,omitempty"`
	UpTo    int64       `json:"up_to,omitempty"`
	PID     int         `json:"pid,omitempty"`
	N       uint64      `json:"n,omitempty"` // of the first
	Time    int64       `json:"time,omitempty"`
	Changes [][6]uint64 `json:"changes,omitempty"`
	List    *List       `json:"list,omitempty"`
	Why     string      `json:"why,omitempty"` // of the end
}

// Append appends a batch as lines of JSON.
func Append(dst []byte, b *Batch) ([]byte, error) {
	add := func(m *message) error {
		text, err := json.Marshal(m)
		dst = append(append(dst, text...), '\n')
		return err
	}
	for _, s := range b.States {
		if err := add(&message{State: s}); err != nil {
			return dst, err
		}
	}
	for i := 0; i < len(b.Changes); {
		m, n := run(b.Changes[i:])
		if err := add(m); err != nil {
			return dst, err
		}
		i += n
	}
	if b.UpTo == 0 {
		return dst, nil
	}
	return dst, add(&message{UpTo: b.UpTo})
}

// run makes one message of the changes that can be told in one: those of one
// process that follow each other, up to one that has more to say.
func run(list []Change) (m *message, n int) {
	first := &list[0]
	m = &message{PID: first.PID, N: first.N, Time: first.Time}
	for i := range list {
		c := &list[i]
		if c.PID != m.PID || c.N != m.N+uint64(i) {
			break
		}
		m.Changes = append(m.Changes, [6]uint64{uint64(c.Kind), uint64(c.Time - m.Time), uint64(c.List), c.Addr, c.Size, c.Asked})
		n++
		if m.List, m.Why = c.Def, c.Why; c.Def != nil || c.Why != "" {
			break
		}
	}
	return m, n
}

// Parse reads a line. What it does not know it passes over.
func Parse(line []byte) (b Batch, err error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return b, fmt.Errorf("a line about allocations: %w", err)
	}
	if m.State != nil {
		for i := range m.State.Lists {
			if err := m.State.Lists[i].check(); err != nil {
				return b, err
			}
		}
		b.States = []*State{m.State}
	}
	if m.List != nil {
		if err := m.List.check(); err != nil {
			return b, err
		}
	}
	b.UpTo = m.UpTo
	for i, x := range m.Changes {
		c := Change{N: m.N + uint64(i), Time: m.Time + int64(x[1]), PID: m.PID, Kind: Kind(x[0]), List: uint32(x[2]), Addr: x[3], Size: x[4], Asked: x[5]}
		if i == len(m.Changes)-1 {
			c.Def, c.Why = m.List, m.Why
		}
		if x[0] > 255 || x[2]>>32 != 0 || x[1]>>62 != 0 || c.Kind == Defined && (c.Def == nil || c.Def.ID != c.List) {
			return b, fmt.Errorf("a line about allocations: change %v makes no sense", x)
		}
		b.Changes = append(b.Changes, c)
	}
	return b, nil
}

// check finds the pool by its name, which is all that is sent.
func (l *List) check() error {
	pool, ok := model.PoolNamed(l.Pool)
	if !ok {
		return fmt.Errorf("a line about allocations: there is no pool %q", l.Pool)
	}
	l.Geometry.Pool = pool
	return nil
}
