// Package series keeps what snapshots said over time in memory, compressed as
// Prometheus does it, so that PromQL can be asked about it.
//
// Its place in the flow: ttmond replay fills it from a recording, and charts of
// the page are made of it. A daemon's own history is on disk (history/disk).
package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	ttmon "github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// perChunk is how many samples are compressed together.
const perChunk = 120

// Store holds the series. Its methods may be called by any goroutine.
type Store struct {
	mu     sync.Mutex
	walker *prom.Walker
	byKey  map[string]*line
	key    []byte
	rows   uint64
	last   int64 // ms of the last snapshot
}

// line is one series.
type line struct {
	labels labels.Labels
	chunks []chunk
	append chunkenc.Appender // to the last chunk
	row    uint64            // in which it was seen last
	ended  bool              // a marker says that it is not there any more
}

type chunk struct {
	data        *chunkenc.XORChunk
	first, last int64 // ms
}

// New makes an empty store.
func New() *Store {
	return &Store{walker: prom.NewWalker(prom.Options{}), byKey: map[string]*line{}, last: math.MinInt64}
}

// Add takes in a snapshot. One that is not later than the one before is left
// out.
func (s *Store) Add(snap *ttmon.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := snap.Time.UnixMilli()
	if ms <= s.last {
		return nil
	}
	s.last = ms
	s.rows++
	s.walker.Observe(snap)
	var failed error
	s.walker.Walk(snap, nil, func(f *prom.Family, text []byte, v float64) {
		l := s.find(f, text)
		l.row, l.ended = s.rows, false
		failed = errors.Join(failed, l.add(ms, v))
	})
	for _, l := range s.byKey {
		if l.row != s.rows && !l.ended {
			l.ended = true
			failed = errors.Join(failed, l.add(ms, math.Float64frombits(value.StaleNaN)))
		}
	}
	return failed
}

func (s *Store) find(f *prom.Family, text []byte) *line {
	s.key = append(append(append(s.key[:0], f.Name...), '{'), text...)
	l := s.byKey[string(s.key)]
	if l == nil {
		pairs := []string{model.MetricNameLabel, f.Name}
		for key, value := range prom.Labels(string(text)) {
			pairs = append(pairs, key, value)
		}
		l = &line{labels: labels.FromStrings(pairs...)}
		s.byKey[string(s.key)] = l
	}
	return l
}

func (l *line) add(ms int64, v float64) error {
	n := len(l.chunks)
	if n == 0 || l.chunks[n-1].data.NumSamples() >= perChunk {
		data := chunkenc.NewXORChunk()
		appender, err := data.Appender()
		if err != nil {
			return fmt.Errorf("keeping a series: %w", err)
		}
		if n > 0 {
			l.chunks[n-1].data.Compact()
		}
		l.append = appender
		l.chunks = append(l.chunks, chunk{data: data, first: ms})
	}
	l.append.Append(0, ms, v)
	l.chunks[len(l.chunks)-1].last = ms
	return nil
}

// Querier implements storage.Queryable.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{s, mint, maxt}, nil
}

type querier struct {
	s          *Store
	mint, maxt int64
}

// Select implements storage.Querier.
func (q *querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = hints.Start, hints.End
	}
	var found []storage.Series
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	for _, l := range q.s.byKey {
		if matches(l.labels, matchers) {
			if chunks := l.between(mint, maxt); len(chunks) > 0 {
				found = append(found, seriesOf(l.labels, chunks))
			}
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{list: found, at: -1}
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// between are the chunks that hold some of a stretch of time. The last one may
// still grow, so it is a copy.
func (l *line) between(mint, maxt int64) (out []chunkenc.Chunk) {
	for i, c := range l.chunks {
		if c.last < mint || c.first > maxt {
			continue
		}
		data := c.data
		if i == len(l.chunks)-1 {
			if x, err := chunkenc.FromData(chunkenc.EncXOR, slices.Clone(data.Bytes())); err == nil {
				out = append(out, x)
			}
			continue
		}
		out = append(out, data)
	}
	return out
}

func seriesOf(l labels.Labels, chunks []chunkenc.Chunk) storage.Series {
	return &storage.SeriesEntry{Lset: l, SampleIteratorFn: func(it chunkenc.Iterator) chunkenc.Iterator {
		parts := make([]chunkenc.Iterator, len(chunks))
		for i, c := range chunks {
			parts[i] = c.Iterator(nil)
		}
		return storage.ChainSampleIteratorFromIterators(it, parts)
	}}
}

// LabelValues implements storage.LabelQuerier. Charts do not ask for it.
func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.LabelQuerier. Charts do not ask for it.
func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (q *querier) Close() error { return nil }

// set are found series.
type set struct {
	list []storage.Series
	at   int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *set) At() storage.Series                { return s.list[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
