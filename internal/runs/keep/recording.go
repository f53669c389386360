package keep

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/runs"
)

// OfRecording finds the runs in a recording, as far as a moment; the zero time is
// its end. They are numbered from 1.
func OfRecording(r *recording.Reader, until time.Time) ([]runs.Run, error) {
	if _, last, ok := r.Span(); !ok {
		return nil, recording.ErrEmpty
	} else if until.IsZero() || until.After(last) {
		until = last
	}
	var ended []runs.Run
	t := tracker{ended: func(x *runs.Run) {
		ended = slices.DeleteFunc(ended, func(y runs.Run) bool { return y.ID == x.ID }) // it is known better now
		ended = append(ended, x.Clone())
	}}
	c := r.Begin()
	for {
		rec, err := c.NextUntil(until)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("finding the runs of a recording: %w", err)
		}
		if rec.Kind != recording.KindSnapshot {
			continue
		}
		s, err := c.Snapshot()
		if err != nil {
			return nil, fmt.Errorf("finding the runs of a recording: %w", err)
		}
		if s != nil {
			t.observe(s)
		}
	}
	for _, l := range t.live {
		ended = append(ended, l.Clone())
	}
	slices.SortFunc(ended, byStart)
	return ended, nil
}

// Largest is the run of a list that held the most DRAM, or, where that is not
// known of any, took longest.
func Largest(list []runs.Run) (runs.Run, bool) {
	if len(list) == 0 {
		return runs.Run{}, false
	}
	return slices.MaxFunc(list, func(a, b runs.Run) int {
		x, y := a.Pools["dram"].Peak, b.Pools["dram"].Peak
		if x != y {
			return int(min(max(int64(x)-int64(y), -1), 1))
		}
		return int(min(max(a.Took()-b.Took(), -1), 1))
	}), true
}
