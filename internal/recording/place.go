package recording

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Where is the line that a place stands for: the innermost one that is not in
// an installed library, else the innermost.
func (s *Site) Where() (Frame, bool) {
	for _, f := range s.Stack {
		if f.Line > 0 && !strings.Contains(f.File, "/site-packages/") && !strings.Contains(f.File, "/dist-packages/") &&
			!strings.Contains(f.File, "/lib/python3.") && !strings.HasPrefix(f.File, "<frozen ") {
			return f, true
		}
	}
	if len(s.Stack) > 0 {
		return s.Stack[0], true
	}
	return Frame{}, false
}

// Peak is the moment at which the most DRAM was allocated: by the blocks of
// programs that told them, otherwise by the snapshots.
func Peak(r *Reader) (time.Time, error) {
	var at time.Time
	var most, now uint64
	exact := false
	c := r.Begin()
	for {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return at, err
		}
		switch rec.Kind {
		case KindAlloc, KindFree, KindClear, KindClosed, KindEnded:
			if now = dram(c.State); now > most || !exact {
				most, at, exact = now, rec.Time, true
			}
		case KindSnapshot:
			if exact {
				continue
			}
			s, err := c.Snapshot()
			if err != nil || s == nil {
				continue
			}
			if now = snapshotDRAM(s); now > most || at.IsZero() {
				most, at = now, rec.Time
			}
		}
	}
	return at, nil
}

// dram is what all lists of DRAM hold, on all their chips.
func dram(s *State) (n uint64) {
	for _, l := range s.lists {
		if l.def.Geometry.Pool == model.DRAM {
			n += l.live.Usage().BankBytes * l.def.Geometry.Banks * uint64(max(len(l.def.Chips), 1))
		}
	}
	return n
}

func snapshotDRAM(s *model.Snapshot) (n uint64) {
	for i := range s.Devices {
		if b, _, ok := s.Devices[i].Memory.Pools[model.DRAM].Used.Best(); ok {
			n += b
		}
	}
	return n
}

// Chips are the chips of each list, by its number, as far as they became known
// in the whole recording: the first blocks of a list are often older than that.
func (r *Reader) Chips() (map[uint32][]uint64, error) {
	out := map[uint32][]uint64{}
	err := r.scan(true, func(kind Kind, _ int64, body []byte) error {
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
