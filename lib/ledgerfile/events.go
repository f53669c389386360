package ledgerfile

import (
	"fmt"
	"time"
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
	var h header
	if err := r.readHeader(fd, &h); err != nil {
		return dst, from, 0, err
	}
	if h.events.used == 0 {
		return dst, from, 0, fmt.Errorf("%w: the ledger has no events", ErrNotReady)
	}
	count, ring := le.Uint64(h.raw[offEventCount:]), uint64(h.events.used)
	if count < from {
		return dst, from, 0, fmt.Errorf("%w: it had %d events, and now %d", ErrDamaged, from, count)
	}
	c := clock{int64(le.Uint64(h.raw[offReal:])), int64(le.Uint64(h.raw[offMonotonic:]))}
	if count-from > ring {
		lost = count - from - ring
		from += lost
	}
	for from < count {
		// One piece of the ring at a time, up to its end.
		at := from % ring
		n := min(count-from, ring-at)
		if uint64(cap(r.again)) < n*eventSize {
			r.again = make([]byte, n*eventSize)
		}
		r.again = r.again[:n*eventSize]
		m, err := pread(fd, r.again, h.events.offset+int64(at)*eventSize)
		if err != nil || m < len(r.again) {
			return dst, from, lost, fmt.Errorf("%w: the ring of events is cut off", ErrDamaged)
		}
		for i := range n {
			b := r.again[i*eventSize:]
			if le.Uint64(b[eventNumber:]) != from+i+1 {
				lost++ // overwritten since, or being overwritten
				continue
			}
			dst = append(dst, decodeEvent(b, c))
		}
		from += n
	}
	return dst, from, lost, nil
}

func decodeEvent(b []byte, c clock) Event {
	return Event{
		Kind: EventKind(b[eventKind]), Time: c.at(int64(le.Uint64(b[eventTime:]))), List: int(le.Uint32(b[eventList:])),
		Address: le.Uint64(b[eventAddress:]), Bytes: le.Uint64(b[eventBytes:]), Asked: le.Uint64(b[eventAsked:]), More: le.Uint64(b[eventMore:]),
		Tag: le.Uint32(b[eventTag:]), Node: le.Uint32(b[eventNode:]), Pool: Pool(b[eventPool]), Late: b[eventLate] != 0,
	}
}

// Text is a tag of an event.
func (l *Ledger) Text(at uint32) string { return l.text(at) }

// Knows reports whether a copy is new enough for a tag and a stack.
func (l *Ledger) Knows(tag, node uint32) bool {
	return int(tag) < max(len(l.strings), 1) && int(node) < max(len(l.nodes)/int(recordSize[secNodes]), 1)
}

// Places copies what the tags and stacks of events refer to, and nothing else.
// It is only ever added to, so what an event names is there after it.
func (r *Reader) Places(fd int) (*Ledger, error) {
	if err := r.readHeader(fd, &r.header); err != nil {
		return nil, err
	}
	l := &Ledger{}
	for i, to := range map[int]*[]byte{secFrames: &l.frames, secNodes: &l.nodes, secStrings: &l.strings} {
		s := r.header.sections[i]
		*to = make([]byte, int(s.used)*int(recordSize[i]))
		n, err := pread(fd, *to, s.offset)
		if err != nil || n < len(*to) {
			return nil, fmt.Errorf("%w: it is cut off in section %d", ErrDamaged, i)
		}
	}
	return l, nil
}
