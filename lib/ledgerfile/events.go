package ledgerfile

import (
	"cmp"
	"fmt"
	"time"
	"unsafe"
)

// EventKind is what happened.
type EventKind uint8

// The kinds. ttmon_ledger.h documents which fields of an Event they use.
const (
	EventAlloc EventKind = iota + 1
	EventFree
	EventAsked
	EventClear
	EventMade
	EventClosed
	EventChip
	EventPool
	EventCut
	EventFailed
)

// Event is one change of lists and blocks.
type Event struct {
	Kind    EventKind
	Time    time.Time
	List    int    // its number; another list may have it later
	Address uint64 // Made: base; Chip: its unique id; Cut: at the low end
	Bytes   uint64 // of each bank; Made: capacity; Cut: at the high end
	Asked   uint64 // Made: alignment
	More    uint64 // Made: smallest block
	Tag     uint32 // for Text; Made: banks
	Node    uint32 // for Stack; Made, and Chip without a list: group
	Pool    Pool
	Late    bool
}

// Events appends to dst the events of a process from number from on, and
// returns the number of the next one. lost counts those that were overwritten
// before they could be read; then read a new copy of the ledger, and continue
// from next.
func (r *Reader) Events(fd int, from uint64, dst []Event) (out []Event, next, lost uint64, err error) {
	h := &r.header
	if err := h.read(fd); err != nil {
		return dst, from, 0, err
	}
	ring := uint64(h.Section[secEvents].Used)
	if ring == 0 {
		return dst, from, 0, fmt.Errorf("%w: the ledger has no events", ErrNotReady)
	}
	if h.EventCount < from {
		return dst, from, 0, fmt.Errorf("%w: it had %d events, and now %d", ErrDamaged, from, h.EventCount)
	}
	if behind := h.EventCount - from; behind > ring {
		lost = behind - ring
		from += lost
	}
	for from < h.EventCount {
		// One piece of the ring at a time, up to its end.
		at := from % ring
		n := min(h.EventCount-from, ring-at)
		if load(fd, h.Section[secEvents].Offset+at*uint64(unsafe.Sizeof(eventRecord{})), int(n), &r.events) != nil {
			return dst, from, lost, fmt.Errorf("%w: the ring of events is cut off", ErrDamaged)
		}
		for i := range r.events {
			x := &r.events[i]
			if x.Number != from+uint64(i)+1 {
				lost++ // overwritten since, or being overwritten
				continue
			}
			dst = append(dst, Event{
				Kind: x.Kind, Time: h.Clock.at(x.Time), List: int(x.List), Address: x.Address, Bytes: x.Bytes, Asked: x.Asked, More: x.More,
				Tag: x.Tag, Node: x.Node, Pool: x.Pool, Late: x.Late != 0,
			})
		}
		from += n
	}
	return dst, from, lost, nil
}

// Knows reports whether a copy is new enough for a tag and a stack.
func (l *Ledger) Knows(tag, node uint32) bool {
	return int(tag) < max(len(l.texts), 1) && int(node) < max(len(l.nodes), 1)
}

// Places copies what the tags and stacks of events refer to, and nothing else.
// It is only ever added to, so what an event names is there after it.
func (r *Reader) Places(fd int) (*Ledger, error) {
	h, l := &r.header, &Ledger{}
	if err := h.read(fd); err != nil {
		return nil, err
	}
	err := cmp.Or(all(fd, h.Section[secFrames], &l.frames), all(fd, h.Section[secNodes], &l.nodes), all(fd, h.Section[secStrings], &l.texts))
	if err != nil {
		return nil, err
	}
	return l, nil
}
