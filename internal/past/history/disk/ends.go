package disk

import (
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// A sample holds until the next one of its series. Where none follows, because
// the series has gone, the daemon stopped, crashed or was held up, a stale marker
// ends it: a query for a later time gets nothing, however long a sample is
// allowed to hold.

var stale = math.Float64frombits(value.StaleNaN)

// isGap reports whether rows were missed between the last row and this one:
// more than being late. It learns how far apart rows usually are.
func (s *Store) isGap(ms int64) bool {
	between := ms - s.lastMS
	if s.lastMS == 0 || between <= 0 {
		return false
	}
	usual := max(s.apartMS, 1000)
	gap := between > 3*usual+2000
	if gap {
		between = 2 * usual // the interval may have been changed
	}
	s.apartMS = min(between, 60_000)
	return gap
}

// endedRow are the markers for the series that were in the row before the one
// that was just taken.
func (s *Store) endedRow() (row []sample) {
	for _, x := range s.batch {
		if !x.began {
			row = append(row, sample{x: x.x, v: stale, often: true})
		}
	}
	return row
}

// liveRow are the markers for all series that are live.
func (s *Store) liveRow() (row []sample) {
	for _, x := range s.series.byKey {
		if !x.ended {
			row = append(row, sample{x: x, v: stale, often: true})
		}
	}
	return row
}

// appendEnds writes a row of markers right after the last row, everywhere. What
// the disk does not take is lost, as the row before may be.
func (s *Store) appendEnds(row []sample) {
	if s.lastMS == 0 || len(row) == 0 {
		return
	}
	var count tally
	for ref, db := range []*database{s.fine, s.coarse, s.memory} {
		if db != nil {
			_ = db.append(s.lastMS+1, row, ref, true, &count)
		}
	}
}

// coarseRow is the row for the coarse database, with the ends that came between
// two of its rows.
func (s *Store) coarseRow() []sample {
	row := s.batch
	for _, x := range s.endedSince {
		if x.ended {
			row = append(row, sample{x: x, v: stale, often: true})
		}
	}
	s.endedSince = s.endedSince[:0]
	return row
}

// liveFor is how old the last sample of a series that is live can be, in ms:
// samples that do not change are written every CoarseEvery.
const liveFor = 60_000

// endUnfinished marks the ends of series of a process that did not come to do
// so: it crashed.
func (s *Store) endUnfinished() {
	if s.fine == nil || s.coarse == nil || s.fine.empty() {
		return
	}
	at := s.fine.newest() + 1
	for _, db := range []*database{s.fine, s.coarse} {
		if db.empty() || at-db.newest() > liveFor {
			continue
		}
		if err := db.endUnfinished(at); err != nil {
			s.opt.Log.Warn("cannot mark the end of series that a crash interrupted", "dir", db.dir, "err", err)
		}
	}
}

func (d *database) endUnfinished(at int64) error {
	newest := d.newest()
	q, err := d.db.Querier(newest-liveFor, newest)
	if err != nil {
		return err
	}
	defer q.Close()
	live := q.Select(background, false, nil, labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, ""))
	app := d.db.Appender(background)
	var it chunkenc.Iterator
	for live.Next() {
		x := live.At()
		it = x.Iterator(it)
		last := math.NaN()
		for it.Next() == chunkenc.ValFloat {
			_, last = it.At()
		}
		if it.Err() != nil || value.IsStaleNaN(last) || math.IsNaN(last) {
			continue
		}
		if _, err := app.Append(storage.SeriesRef(0), x.Labels().Copy(), at, stale); err != nil && !orderly(err) {
			_ = app.Rollback()
			return err
		}
	}
	if err := live.Err(); err != nil {
		_ = app.Rollback()
		return err
	}
	return app.Commit()
}

// empty reports whether there is no sample.
func (d *database) empty() bool {
	return d.newest() < 0 || d.newest() > 1<<62
}
