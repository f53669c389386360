package metric

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Sizes of what is printed in MiB.
const mib = 1 << 20

type number interface {
	~int | ~uint32 | ~uint64 | ~float64
}

func missing[T any](r model.Reading[T]) Value { return Value{Status: r.Status, Why: r.Why} }

// num is a numeric reading.
func num[T number](r model.Reading[T]) Value {
	if !r.Known() {
		return missing(r)
	}
	return Value{Status: model.Known, Nominal: r.Nominal, Num: float64(r.V)}
}

// figure is a memory figure.
func figure(b model.Bytes) Value {
	n, bound, known := b.Best()
	if !known {
		return Value{Status: b.Status()}
	}
	return Value{Status: model.Known, Bound: bound, Num: float64(n)}
}

// bound is the bound of a memory figure.
func bound(b model.Bytes) Value {
	_, bound, known := b.Best()
	if !known {
		return Value{Status: b.Status()}
	}
	return str(bound.String())
}

func count(n int) Value { return Value{Status: model.Known, Num: float64(n)} }

func yes(r model.Reading[bool]) Value {
	if !r.Known() {
		return missing(r)
	}
	v := Value{Status: model.Known, Nominal: r.Nominal}
	if r.V {
		v.Num = 1
	}
	return v
}

func text(r model.Reading[string]) Value {
	if !r.Known() {
		return missing(r)
	}
	return Value{Status: model.Known, Nominal: r.Nominal, Text: r.V}
}

// str is a plain string; the empty one is absent.
func str(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{Status: model.Known, Text: s}
}

func instant(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return str(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// Shorthands for the tables.

type getDevice = func(*model.Snapshot, *model.Device) Value

func same(names ...string) []Synonym {
	list := make([]Synonym, len(names))
	for i, n := range names {
		list[i].Name = n
	}
	return list
}

func gauge(name string) Prom { return Prom{Name: "tenstorrent_" + name, Type: "gauge"} }

func (p Prom) with(labels string, factor float64) Prom {
	p.Labels, p.Factor = labels, factor
	return p
}

func counter(name, labels string) Prom {
	return Prom{Name: "tenstorrent_" + name, Type: "counter", Labels: labels}
}
