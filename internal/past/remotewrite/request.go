package remotewrite

import (
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ttmon/ttmon/internal/view/prom"
)

// builder makes requests. It remembers which series were in the last one, to
// tell the engine of those that ended.
type builder struct {
	external []prompb.Label
	series   map[string]*known
	gen      uint64
	key      []byte
}

type known struct {
	labels []prompb.Label // sorted
	gen    uint64
}

func newBuilder(external map[string]string) *builder {
	b := &builder{series: map[string]*known{}}
	for k, v := range external {
		b.external = append(b.external, prompb.Label{Name: k, Value: v})
	}
	return b
}

// maxSeries bounds a request.
const maxSeries = 20_000

// build makes a request of all samples of a walk.
func (b *builder) build(ms int64, walk func(prom.Emit)) *prompb.WriteRequest {
	b.gen++
	r := &prompb.WriteRequest{}
	add := func(x *known, v float64) {
		r.Timeseries = append(r.Timeseries, prompb.TimeSeries{Labels: x.labels, Samples: []prompb.Sample{{Value: v, Timestamp: ms}}})
	}
	walk(func(f *prom.Family, labels prom.Labels, v float64) {
		b.key = labels.AppendText(append(append(b.key[:0], f.Name...), '{'))
		x := b.series[string(b.key)]
		if x == nil {
			if len(b.series) >= maxSeries {
				return
			}
			x = &known{labels: b.labels(f.Name, labels)}
			b.series[string(b.key)] = x
		}
		x.gen = b.gen
		add(x, v)
	})
	for key, x := range b.series {
		if x.gen != b.gen {
			add(x, math.Float64frombits(value.StaleNaN))
			delete(b.series, key)
		}
	}
	return r
}

// labels are the sample's, and the external ones that it does not have.
func (b *builder) labels(name string, own prom.Labels) []prompb.Label {
	list := []prompb.Label{{Name: "__name__", Value: name}}
	for _, l := range own {
		list = append(list, prompb.Label{Name: l.Name, Value: l.Value})
	}
	have := map[string]bool{}
	for _, l := range list {
		have[l.Name] = true
	}
	for _, l := range b.external {
		if !have[l.Name] {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// encode makes the body of protocol 1.0, which is what the buffer holds.
func encode(r *prompb.WriteRequest) ([]byte, error) {
	b, err := r.Marshal()
	if err != nil {
		return nil, err
	}
	return s2.EncodeSnappy(nil, b), nil
}

// encode2 makes a body of protocol 2.0 from one of 1.0.
func encode2(body []byte) ([]byte, error) {
	n, err := s2.DecodedLen(body)
	if err != nil || n > 256<<20 {
		return nil, errDamaged
	}
	raw, err := s2.Decode(nil, body)
	if err != nil {
		return nil, errDamaged
	}
	var r prompb.WriteRequest
	if err := r.Unmarshal(raw); err != nil {
		return nil, errDamaged
	}
	types := map[string]writev2.Metadata_MetricType{}
	table := writev2.NewSymbolTable()
	helps := map[string]prom.Family{}
	for _, f := range prom.Families() {
		helps[f.Name] = f
		types[f.Name] = writev2.Metadata_METRIC_TYPE_GAUGE
		if f.Type == "counter" {
			types[f.Name] = writev2.Metadata_METRIC_TYPE_COUNTER
		}
	}
	out := &writev2.Request{}
	for _, ts := range r.Timeseries {
		var refs []uint32
		name := ""
		for _, l := range ts.Labels {
			refs = append(refs, table.Symbolize(l.Name), table.Symbolize(l.Value))
			if l.Name == "__name__" {
				name = l.Value
			}
		}
		x := writev2.TimeSeries{LabelsRefs: refs}
		for _, s := range ts.Samples {
			x.Samples = append(x.Samples, writev2.Sample{Value: s.Value, Timestamp: s.Timestamp})
		}
		f := helps[name]
		x.Metadata = writev2.Metadata{Type: types[name], HelpRef: table.Symbolize(f.Help), UnitRef: table.Symbolize(f.Unit())}
		out.Timeseries = append(out.Timeseries, x)
	}
	out.Symbols = table.Symbols()
	b, err := out.Marshal()
	if err != nil {
		return nil, err
	}
	return s2.EncodeSnappy(nil, b), nil
}
