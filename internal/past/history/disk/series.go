package disk

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/view/prom"
)

// series is one that is, or recently was, there.
type series struct {
	labels labels.Labels
	own    prom.Labels          // the same, without the name
	refs   [3]storage.SeriesRef // in the fine, coarse and memory databases
	last   float64
	gen    uint64 // the row in which it was seen last
	ended  bool   // a stale marker was written
}

// keepEnded is for how many rows an ended series is remembered: it may come
// back.
const keepEnded = 600

// seriesSet finds series by their labels, without garbage.
type seriesSet struct {
	max   int
	byKey map[string]*series
	key   []byte
	// row is the last row, and at where this one is in it. Nearly always it is
	// the same series in the same order, which is cheaper to find out than to
	// look each one up.
	row []seen
	at  int
}

// seen is one series of a row.
type seen struct {
	f *prom.Family
	x *series
}

func newSeriesSet(maximum int) seriesSet {
	return seriesSet{max: maximum, byKey: map[string]*series{}}
}

func (s *seriesSet) len() int { return len(s.byKey) }

// find returns the series of a family with labels; nil if there are too many.
// fresh: it was not there in the row before.
func (s *seriesSet) find(f *prom.Family, own prom.Labels) (x *series, fresh bool) {
	if s.at < len(s.row) {
		if l := &s.row[s.at]; l.f == f && slices.Equal(l.x.own, own) {
			s.at++
			return l.x, l.x.ended
		}
	}
	if x, fresh = s.lookUp(f, own); x != nil {
		if s.at == len(s.row) {
			s.row = append(s.row, seen{})
		}
		s.row[s.at] = seen{f, x}
		s.at++
	}
	return x, fresh
}

func (s *seriesSet) lookUp(f *prom.Family, own prom.Labels) (x *series, fresh bool) {
	s.key = own.AppendText(append(append(s.key[:0], f.Name...), '{'))
	if x := s.byKey[string(s.key)]; x != nil {
		return x, x.ended
	}
	if len(s.byKey) >= s.max {
		return nil, false
	}
	x = &series{labels: labelsOf(f.Name, own), own: slices.Clone(own)}
	s.byKey[string(s.key)] = x
	return x, true
}

// sweep calls ended with every series that was there before row gen and is not
// in it.
func (s *seriesSet) sweep(gen uint64, ended func(*series)) {
	clear(s.row[s.at:])
	s.row, s.at = s.row[:s.at], 0
	for key, x := range s.byKey {
		switch {
		case x.gen == gen:
		case !x.ended:
			x.ended = true
			ended(x)
		case gen-x.gen > keepEnded:
			delete(s.byKey, key)
		}
	}
}

// forget drops what was learned about the databases.
func (s *seriesSet) forget() {
	for _, x := range s.byKey {
		x.refs = [3]storage.SeriesRef{}
	}
}

// labelsOf are the labels of a series, with its name.
func labelsOf(name string, own prom.Labels) labels.Labels {
	pairs := append(make([]string, 0, 2+2*len(own)), model.MetricNameLabel, name)
	for _, l := range own {
		pairs = append(pairs, l.Name, l.Value)
	}
	return labels.FromStrings(pairs...)
}
