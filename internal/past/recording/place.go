package recording

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Where is the line of the program that a place stands for.
func (s *Site) Where() (ledgerfile.Frame, bool) { return callsite.Where(s.Stack) }

// Peak is the moment at which the most of a pool was allocated: by the blocks of
// programs that told them, otherwise by the snapshots.
func Peak(r *Reader, pool model.Pool) (time.Time, error) {
	at, exact, err := peak(r, pool, true)
	if err == nil && !exact {
		at, _, err = peak(r, pool, false)
	}
	return at, err
}

// PeakSnapshot is the moment of the snapshot in which the most of a pool was
// allocated, for those who show snapshots: what was allocated between two of them
// is in neither.
func PeakSnapshot(r *Reader, pool model.Pool) (time.Time, error) {
	at, _, err := peak(r, pool, false)
	return at, err
}

// peak finds the moment in the blocks or in the snapshots; found: there are any.
func peak(r *Reader, pool model.Pool, blocks bool) (at time.Time, found bool, err error) {
	var most uint64
	c := r.Begin()
	for {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			return at, found, nil
		}
		if err != nil {
			return at, found, err
		}
		now := uint64(0)
		switch rec.Kind {
		case KindAlloc, KindFree, KindClear, KindClosed, KindEnded:
			if !blocks {
				continue
			}
			now = held(c.State, pool)
		case KindSnapshot:
			s, err := c.Snapshot()
			if blocks || err != nil || s == nil {
				continue
			}
			now = heldBy(s, pool)
		default:
			continue
		}
		if now > most || !found {
			most, at, found = now, rec.Time, true
		}
	}
}

// held is what all lists of a pool hold, on all their chips.
func held(s *State, pool model.Pool) (n uint64) {
	for _, l := range s.lists {
		if l.def.Geometry.Pool == pool {
			n += l.live.Usage().BankBytes * l.def.Geometry.Banks * uint64(max(len(l.def.Chips), 1))
		}
	}
	return n
}

// heldBy is what the devices of a snapshot hold, as far as it is known.
func heldBy(s *model.Snapshot, pool model.Pool) (n uint64) {
	for i := range s.Devices {
		if b, _, ok := s.Devices[i].Memory.Pools[pool].Used.Best(); ok {
			n += b
		}
	}
	return n
}

// Chips are the chips of each list, by its number, as far as they became known
// in the whole recording: the first blocks of a list are often older than that.
func (r *Reader) Chips() (map[uint32][]uint64, error) {
	out := map[uint32][]uint64{}
	err := r.scan(scan{restated: true}, func(kind Kind, _ int64, body []byte) error {
		if kind != KindList {
			return nil
		}
		var l List
		if err := newState().decode(body, &l); err != nil {
			return err
		}
		for _, chip := range l.Chips {
			if !slices.Contains(out[l.ID], chip) {
				out[l.ID] = append(out[l.ID], chip)
			}
		}
		return nil
	}, func(int64) {})
	return out, err
}
