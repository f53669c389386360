package track

import (
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// LedgerEvents are the events of one ledger since the last call of Events.
type LedgerEvents struct {
	Path string
	PID  int // 0: it has ended, or cannot be seen
	// Ledger is who it is: the copy of the last sweep.
	Ledger *ledgerfile.Ledger
	// Resync is a copy of the whole ledger where events were missed, or where
	// the process was found when its first ones were gone: it holds now, and
	// Events are those after it. Nil: Events go on from before.
	Resync *ledgerfile.Ledger
	Events []ledgerfile.Event
	// Places tells the tags and stacks of Events.
	Places *ledgerfile.Ledger
	// Lost counts the events that were missed, in all.
	Lost uint64
}

// Events asks the processes that tell events, of those that the last sweep
// found, what happened since. It is cheap, and is to be called often: what they
// tell is kept in a ring.
func (r *Reader) Events() (out []LedgerEvents) {
	for _, f := range r.files {
		if f.ledger == nil || !f.ledger.TellsEvents || f.drained || r.opts.Run != "" && f.ledger.Run != r.opts.Run {
			continue
		}
		if t := r.drain(f); t != nil {
			out = append(out, *t)
		}
	}
	sorted.By(out, func(a, b *LedgerEvents) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// drain reads the new events of a ledger. One without a writer is read once.
func (r *Reader) drain(f *file) *LedgerEvents {
	f.drained = f.told
	t := &LedgerEvents{Path: f.path, Ledger: f.ledger, Lost: f.lost}
	if !f.told {
		t.PID = f.holder
	}
	events, next, lost, err := r.copy.Events(f.fd, f.next, nil)
	if err != nil {
		return nil
	}
	if lost > 0 {
		f.lost += lost
		f.behind = true
	}
	f.next, t.Lost = next, f.lost
	if f.behind {
		// What was missed cannot be told; what holds can.
		l, err := r.copy.Read(f.fd)
		if err != nil || l.Moving {
			return nil
		}
		t.Resync, f.behind, f.next, events = l, false, l.Events, nil
	}
	if t.Events = events; len(events) == 0 && t.Resync == nil {
		return nil
	}
	if t.Places = f.places; r.stale(f, events) {
		if f.places, err = r.copy.Places(f.fd); err != nil {
			return nil
		}
		t.Places = f.places
	}
	return t
}

// stale reports whether events name places that came after the copy of them.
func (r *Reader) stale(f *file, events []ledgerfile.Event) bool {
	if f.places == nil {
		return true
	}
	return slices.ContainsFunc(events, func(e ledgerfile.Event) bool {
		return e.Kind == ledgerfile.EventAlloc && !f.places.Knows(e.Tag, e.Node)
	})
}
