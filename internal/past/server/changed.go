package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/view/prom"
)

const (
	// maxChangedSamples bounds what is read for one answer: some two seconds of a
	// core.
	maxChangedSamples = 8_000_000
	maxChanges        = 50
	nameLabel         = "__name__"
)

// comparer finds what changed in a stretch of the history. One question is answered
// at a time: each may read millions of samples.
type comparer struct {
	from  storage.Queryable
	kinds map[string]compared
	slot  chan struct{}
}

// compared is how a family of series is compared and shown.
type compared struct {
	counter bool
	static  bool
	rows    []metric.Device // of the metric table, with their labels
	title   string
	unit    string
}

func newComparer(from storage.Queryable) *comparer {
	c := &comparer{from: from, kinds: map[string]compared{}, slot: make(chan struct{}, 1)}
	for _, f := range prom.Families() {
		if leftOut(f.Name) {
			continue
		}
		c.kinds[f.Name] = compared{counter: f.Type == "counter", static: f.Static, title: strings.ReplaceAll(strings.TrimPrefix(f.Name, "tenstorrent_"), "_", " "), unit: f.Unit()}
	}
	for _, f := range metric.Devices() {
		if k, ok := c.kinds[f.Prom.Name]; ok {
			k.rows = append(k.rows, f)
			c.kinds[f.Prom.Name] = k
		}
	}
	return c
}

// leftOut reports whether a family says nothing of a device or its host: how ttmon
// does, what never changes, and what another family says as well. Processes and
// workloads are left out, too: they come and go, and ttmon runs lists them.
func leftOut(name string) bool {
	for _, part := range []string{
		"_collect_", "_limit_", "_clients", "_snapshot_timestamp", "_info", "_bound", "_device_state", "_devices_in_", "_process_", "_workload_", "_operation_",
		"_energy_", "_memory_tracking", "_chip_", "_simulated",
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "tenstorrent_up"
}

// find compares the series of a stretch with the time before it.
func (c *comparer) find(ctx context.Context, from, to time.Time) (*changed.Answer, error) {
	select {
	case c.slot <- struct{}{}:
		defer func() { <-c.slot }()
	default:
		return nil, changed.ErrBusy
	}
	w := changed.WindowOf(from, to)
	q, err := c.from.Querier(w.Before.UnixMilli(), w.To.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	defer q.Close()
	out := &changed.Answer{Schema: "ttmon.changed/1", Since: w.Before.UTC(), From: w.From.UTC(), To: w.To.UTC(), Changes: []changed.Change{}}
	if out.Away, err = c.away(ctx, q, w); err != nil || out.Away {
		return out, err
	}
	left := maxChangedSamples
	for _, name := range slices.Sorted(maps.Keys(c.kinds)) {
		if left <= 0 {
			out.Partial = true
			break
		}
		if err := c.family(ctx, q, w, name, c.kinds[name], out, &left); err != nil {
			return nil, err
		}
	}
	out.Rank(maxChanges)
	return out, nil
}

// away reports whether the host was not sampled in one of the two times.
func (c *comparer) away(ctx context.Context, q storage.Querier, w changed.Window) (bool, error) {
	var up changed.Series
	set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchEqual, nameLabel, "tenstorrent_up"))
	for set.Next() {
		read(set.At(), &up, w)
	}
	_, _, before, during := up.Result()
	return before.Samples == 0 || during.Samples == 0, set.Err()
}

func (c *comparer) family(ctx context.Context, q storage.Querier, w changed.Window, name string, kind compared, out *changed.Answer, left *int) error {
	set := q.Select(ctx, true, nil, labels.MustNewMatcher(labels.MatchEqual, nameLabel, name))
	for *left > 0 && set.Next() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("comparing %s: %w", name, err)
		}
		s := changed.Series{Counter: kind.counter, Static: kind.static}
		*left -= read(set.At(), &s, w)
		out.Series++
		k, score, before, during := s.Result()
		if score >= changed.Least {
			x := kind.change(set.At().Labels())
			x.Kind, x.Score = k, score
			x.Before, x.During = before, during
			kind.convert(&x)
			out.Changes = append(out.Changes, x)
		}
	}
	if err := set.Err(); err != nil {
		return fmt.Errorf("comparing %s: %w", name, err)
	}
	return nil
}

// read adds the samples of a series, and returns how many there are.
func read(s storage.Series, to *changed.Series, w changed.Window) (n int) {
	it := s.Iterator(nil)
	for it.Next() == chunkenc.ValFloat {
		ms, v := it.At()
		to.Add(w, time.UnixMilli(ms), v)
		n++
	}
	return n
}

// change names a series as people know it.
func (k compared) change(of labels.Labels) changed.Change {
	x := changed.Change{Metric: of.Get(nameLabel), Title: k.title, Unit: k.unit, BusID: of.Get("pci"), Labels: map[string]string{}}
	if i, err := strconv.Atoi(of.Get("device")); err == nil {
		x.Device = &i
	}
	of.Range(func(l labels.Label) {
		switch l.Name {
		case nameLabel, "device", "pci", "chip_id":
		default:
			x.Labels[l.Name] = l.Value
		}
	})
	if row := k.row(x.Labels); row != nil {
		x.Metric, x.Title, x.Unit, x.Labels = row.Name, row.Title, row.Unit, nil
		if k.counter { // "To Device, Since First Seen": its rate is to the device
			x.Title, _, _ = strings.Cut(row.Title, ",")
			x.Unit = perSecond(row.Unit)
		}
	} else if kind := x.Labels["condition"]; kind != "" {
		x.Title, x.Labels, x.Condition = words.Kind(model.ConditionKind(kind)), nil, true
	} else if reason := x.Labels["reason"]; reason != "" {
		x.Title, x.Labels = "throttled by "+reason, nil
	} else if k.counter {
		x.Unit = perSecond(k.unit)
	}
	if x.Title == "" {
		x.Title = k.title
	}
	return x
}

func perSecond(unit string) string {
	if unit == "" {
		return "/s"
	}
	return unit + "/s"
}

// row is the row of the metric table that labels belong to.
func (k compared) row(with map[string]string) *metric.Device {
	for i := range k.rows {
		f := &k.rows[i]
		if f.Prom.Labels == "" && len(with) == 0 {
			return f
		}
		for name, value := range with {
			if len(with) == 1 && f.Prom.Labels == name+"="+strconv.Quote(value) {
				return f
			}
		}
	}
	return nil
}

// convert makes the figures of a field those of its unit.
func (k compared) convert(x *changed.Change) {
	for i := range k.rows {
		f := &k.rows[i]
		if f.Name != x.Metric {
			continue
		}
		per := 1.0
		if f.Prom.Factor != 0 {
			per *= f.Prom.Factor
		}
		if f.Per != 0 {
			per *= f.Per
		}
		for _, p := range []*changed.Part{&x.Before, &x.During} {
			p.Mean, p.Min, p.Max, p.Spread = p.Mean/per, p.Min/per, p.Max/per, p.Spread/per
		}
	}
}
