package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// boundWord is how a figure is to be read; empty: it is exact.
func boundWord(b model.Bound) string { return [...]string{"", "at_least", "unsure"}[boundNumber(b)] }

func labelText(l map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, k+"="+l[k])
	}
	return strings.Join(parts, " ")
}

// table is a line for each point.
type table struct {
	pointsOnly
	out    *csv.Writer
	labels map[*Series]string
}

// NewCSV writes a line for each point.
func NewCSV(w io.Writer) Sink {
	t := &table{out: csv.NewWriter(w), labels: map[*Series]string{}}
	_ = t.out.Write([]string{"time", "group", "field", "unit", "labels", "value", "bound"}) // Close tells
	return t
}

// Point implements Sink.
func (t *table) Point(s *Series, p Point, bound model.Bound) {
	labels, ok := t.labels[s]
	if !ok {
		labels = labelText(s.Labels)
		t.labels[s] = labels
	}
	_ = t.out.Write([]string{stamp(p.NS), s.Group.String(), s.Field, s.Unit, labels, strconv.FormatFloat(p.V, 'f', -1, 64), boundWord(bound)})
}

// Close implements Sink.
func (t *table) Close() error {
	t.out.Flush()
	return t.out.Error()
}

// documents is a JSON document a line.
type documents struct {
	out  *bufio.Writer
	line bytes.Buffer
	enc  *json.Encoder // into line
	err  error
}

// NewJSONL writes a JSON document a line: points, slices and instants.
func NewJSONL(w io.Writer) Sink {
	d := &documents{out: bufio.NewWriterSize(w, 256<<10)}
	d.enc = json.NewEncoder(&d.line)
	d.enc.SetEscapeHTML(false)
	return d
}

// row is one point with all that tells what it is.
type row struct {
	Time   string            `json:"time"`
	Group  string            `json:"group"`
	Field  string            `json:"field"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
	Bound  string            `json:"bound,omitempty"` // of a figure that is not exact
}

func (d *documents) write(v any) {
	d.line.Reset()
	err := d.enc.Encode(v)
	if err == nil {
		_, err = d.out.Write(wire.Harmless(d.line.Bytes()))
	}
	if err != nil && d.err == nil {
		d.err = err
	}
}

// Point implements Sink.
func (d *documents) Point(s *Series, p Point, bound model.Bound) {
	d.write(row{Time: stamp(p.NS), Group: s.Group.String(), Field: s.Field, Unit: s.Unit, Labels: s.Labels, Value: p.V, Bound: boundWord(bound)})
}

// Slice implements Sink.
func (d *documents) Slice(s *Slice) {
	d.write(map[string]any{"time": stamp(s.From), "end": stamp(s.To), "group": s.Group.String(), "slice": s.Name, "track": s.Track, "args": args(s.Args)})
}

// Instant implements Sink.
func (d *documents) Instant(x *Instant) {
	d.write(map[string]any{"time": stamp(x.NS), "group": x.Group.String(), "event": x.Name, "track": x.Track, "args": args(x.Args)})
}

// Aligned implements Sink.
func (d *documents) Aligned(list []Slice) {
	for i := range list {
		d.Slice(&list[i])
	}
}

// Close implements Sink.
func (d *documents) Close() error { return errors.Join(d.err, d.out.Flush()) }

// args are those of a slice or an instant, by name.
func args(list []Arg) map[string]any {
	if len(list) == 0 {
		return nil
	}
	out := map[string]any{}
	for _, a := range list {
		out[a.Name] = a.Text
	}
	return out
}
