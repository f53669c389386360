package lines

import (
	"maps"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// Sums are what places of a program hold together, and what each of them held when
// that was the most.
type Sums[P comparable] struct {
	Now   map[P]runs.Amount
	Total map[P]runs.Amount // ever
	Most  map[P]uint64      // bytes that each held at its own peak
	Peak  uint64            // bytes that all held together

	bytes   uint64
	changed map[P]runs.Amount // as they were at the peak, of those that changed since
}

// NewSums returns sums of nothing.
func NewSums[P comparable]() *Sums[P] {
	return &Sums[P]{Now: map[P]runs.Amount{}, Total: map[P]runs.Amount{}, Most: map[P]uint64{}, changed: map[P]runs.Amount{}}
}

// Move takes in that a block came or is gone. One that is told again is not allocated
// again.
func (s *Sums[P]) Move(at P, bytes uint64, gone, again bool) {
	now, total := s.Now[at], s.Total[at]
	if _, known := s.changed[at]; !known {
		s.changed[at] = now
	}
	if gone {
		s.Now[at] = runs.Amount{Bytes: now.Bytes - bytes, Blocks: now.Blocks - 1}
		s.bytes -= bytes
		return
	}
	if !again {
		total.Add(runs.Amount{Bytes: bytes, Blocks: 1})
	}
	now.Add(runs.Amount{Bytes: bytes, Blocks: 1})
	s.Now[at], s.Total[at], s.Most[at] = now, total, max(s.Most[at], now.Bytes)
	if s.bytes += bytes; s.bytes > s.Peak {
		s.Peak = s.bytes
		clear(s.changed) // this is the peak: all is as it is
	}
}

// AtPeak is what each place held when all held the most.
func (s *Sums[P]) AtPeak() map[P]runs.Amount {
	out := maps.Clone(s.Now)
	maps.Copy(out, s.changed)
	return out
}
