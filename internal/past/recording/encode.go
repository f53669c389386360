package recording

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
)

// When a block ends and a key block begins.
const (
	blockBytes  = 2 << 20 // a block is not made longer than that: ten snapshots of 32 boards
	keyEvery    = 20 * time.Second
	keyMinBytes = 4 << 20 // after so much that would have to be read for a moment
)

// Encoder turns what happens into blocks. Times that go back count as the
// last one: who needs them in order sorts before. It belongs to one goroutine.
type Encoder struct {
	pack  *packer
	state *State
	raw   []byte
	key   bool
	told  bool  // the block that is being made has an event
	first int64 // of the block that is being made
	last  int64 // of all records

	lastKey  int64
	keySize  int
	sinceKey int
}

// NewEncoder makes an encoder. Its first block is a key block.
func NewEncoder() (*Encoder, error) {
	p, err := newPacker()
	if err != nil {
		return nil, err
	}
	return &Encoder{pack: p, state: newState()}, nil
}

// Last is the time of the last record.
func (e *Encoder) Last() time.Time { return time.Unix(0, e.last) }

// NotBefore makes a time the earliest of what follows.
func (e *Encoder) NotBefore(t time.Time) { e.last = max(e.last, t.UnixNano()) }

// Pending tells how many bytes wait for Cut, and of what time the first is.
func (e *Encoder) Pending() (bytes int, first time.Time) { return len(e.raw), time.Unix(0, e.first) }

// Full tells that the block should be cut.
func (e *Encoder) Full() bool { return len(e.raw) >= blockBytes }

// Cut appends the block that is being made to dst; key reports whether it stands
// for itself. Without records there is none.
func (e *Encoder) Cut(dst []byte) (out []byte, key bool) {
	if len(e.raw) == 0 {
		return dst, false
	}
	flags := uint32(0)
	if e.key {
		flags |= flagKey
	}
	if !e.told {
		flags |= flagNoEvent
	}
	out = e.pack.pack(dst, e.raw, flags, e.first, e.last)
	key, e.raw, e.told = e.key, e.raw[:0], false
	return out, key
}

// Add adds a record, whose body must not change any more where it is a snapshot's.
func (e *Encoder) Add(kind Kind, t time.Time, body []byte) error {
	ns := max(t.UnixNano(), e.last)
	if len(e.raw) == 0 {
		e.startBlock(ns)
	}
	if _, err := e.state.apply(kind, ns, body); err != nil {
		return err // what no reader could read is not written
	}
	e.append(kind, ns, body)
	e.told = e.told || kind == KindEvent
	return nil
}

func (e *Encoder) append(kind Kind, ns int64, body []byte) {
	before := len(e.raw)
	e.raw = binary.AppendUvarint(e.raw, uint64(kind))
	e.raw = binary.AppendUvarint(e.raw, uint64(ns-e.last))
	e.raw = binary.AppendUvarint(e.raw, uint64(len(body)))
	e.raw = append(e.raw, body...)
	e.last = ns
	e.sinceKey += len(e.raw) - before
}

// startBlock starts a block, a key block if it is time for one.
func (e *Encoder) startBlock(ns int64) {
	e.first, e.last = ns, ns
	old := ns-e.lastKey >= keyEvery.Nanoseconds() && e.sinceKey >= e.keySize
	long := e.sinceKey >= max(keyMinBytes, 4*e.keySize)
	if e.key = e.keySize == 0 || old || long; !e.key {
		return
	}
	e.restate(ns)
	e.append(kindStart, ns, nil)
	e.lastKey, e.keySize, e.sinceKey = ns, len(e.raw), 0
}

// restate writes down all that holds.
func (e *Encoder) restate(ns int64) {
	s := e.state
	definition := func(kind Kind, v any) {
		body, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("BUG: a definition without a form: %v", err)) // they are our own types
		}
		e.append(kind, ns, body)
	}
	if s.Meta.Version != "" {
		definition(KindMeta, s.Meta)
	}
	for _, id := range slices.Sorted(maps.Keys(s.processes)) {
		p := s.processes[id]
		if p.ended {
			delete(s.processes, id)
			continue
		}
		definition(KindProcess, p.def)
		if p.lost > 0 {
			e.append(KindLost, ns, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(id)), p.lost))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.sites)) {
		definition(KindSite, s.sites[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.lists)) {
		definition(KindList, s.lists[id].def)
		e.append(kindHeld, ns, appendHeld(nil, id, s.lists[id].live, ns))
	}
	if s.snapshot != nil {
		e.append(KindSnapshot, ns, s.snapshot)
	}
}

// Snapshot takes in a snapshot's JSON, which must not change any more.
func (e *Encoder) Snapshot(t time.Time, body []byte) error { return e.Add(KindSnapshot, t, body) }

func (e *Encoder) json(kind Kind, t time.Time, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return e.Add(kind, t, body)
}

// Meta tells what the recording is of.
func (e *Encoder) Meta(t time.Time, m Meta) error { return e.json(KindMeta, t, m) }

// Event tells what happened.
func (e *Encoder) Event(x model.Event) error { return e.EventAt(x.Time, x) }

// EventAt tells what happened, at the place of another time: it became known then.
func (e *Encoder) EventAt(t time.Time, x model.Event) error { return e.json(KindEvent, t, x) }

// Failure writes a failed allocation. One that repeats is written again under the
// same ID.
func (e *Encoder) Failure(t time.Time, r *failure.Record) error {
	return e.json(KindFailure, t, r)
}

// Process defines a process whose blocks follow.
func (e *Encoder) Process(t time.Time, p Process) error { return e.json(KindProcess, t, p) }

// List defines a list, or tells that it changed; its blocks stay.
func (e *Encoder) List(t time.Time, l List) error { return e.json(KindList, t, l) }

// Site defines a place in a program.
func (e *Encoder) Site(t time.Time, s Site) error { return e.json(KindSite, t, s) }

func (e *Encoder) numbers(kind Kind, t time.Time, list ...uint64) error {
	var buf [64]byte
	body := buf[:0]
	for _, v := range list {
		body = binary.AppendUvarint(body, v)
	}
	return e.Add(kind, t, body)
}

// Alloc writes a new block; its time is when it was allocated.
func (e *Encoder) Alloc(t time.Time, list uint32, b blocks.Block) error {
	return e.numbers(KindAlloc, t, uint64(list), b.Addr, b.Size, b.Asked, uint64(b.Site))
}

// Free tells that the block at an address is gone.
func (e *Encoder) Free(t time.Time, list uint32, addr uint64) error {
	return e.numbers(KindFree, t, uint64(list), addr)
}

// Requested records how many bytes the buffer of a block requested.
func (e *Encoder) Requested(t time.Time, list uint32, addr, asked uint64) error {
	return e.numbers(KindRequested, t, uint64(list), addr, asked)
}

// Clear tells that a list gave up all its blocks.
func (e *Encoder) Clear(t time.Time, list uint32) error {
	return e.numbers(KindClear, t, uint64(list))
}

// Closed tells that a list ended.
func (e *Encoder) Closed(t time.Time, list uint32) error {
	return e.numbers(KindClosed, t, uint64(list))
}

// Ended tells that a process ended, and its lists with it.
func (e *Encoder) Ended(t time.Time, process uint32) error {
	return e.numbers(KindEnded, t, uint64(process))
}

// Lost tells how many events of a process were missed, in all.
func (e *Encoder) Lost(t time.Time, process uint32, n uint64) error {
	return e.numbers(KindLost, t, uint64(process), n)
}

// Output tells a line that a program printed.
func (e *Encoder) Output(t time.Time, o Output) error {
	return e.Add(KindOutput, t, append([]byte{byte(o.Stream)}, o.Text...))
}

// Live are the blocks of a list as far as they are written; nil if there is none.
func (e *Encoder) Live(list uint32) *blocks.List {
	_, l, _ := e.state.List(list)
	return l
}
