package export

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// row is one point with all that tells what it is.
type row struct {
	Time   string            `json:"time"`
	Group  string            `json:"group"`
	Field  string            `json:"field"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
	Bound  string            `json:"bound,omitempty"` // of a figure that is not exact
	ns     int64
}

// rows are all points in the order of time, each figure with its bound.
func rows(t *Timeline) (out []row) {
	for _, s := range t.Series {
		if strings.HasSuffix(s.Field, ".bound") {
			continue
		}
		for i, p := range s.Points {
			r := row{Time: stamp(p.NS), Group: s.Group.Name, Field: s.Field, Unit: s.Unit, Labels: s.Labels, Value: p.V, ns: p.NS}
			if s.Bounds != nil && i < len(s.Bounds.Points) {
				r.Bound = [...]string{"", "at_least", "unsure"}[int(s.Bounds.Points[i].V)]
			}
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b row) int { return cmp.Compare(a.ns, b.ns) })
	return out
}

func labelText(l map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, k+"="+l[k])
	}
	return strings.Join(parts, " ")
}

// CSV is a line for each point.
func CSV(t *Timeline) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"time", "group", "field", "unit", "labels", "value", "bound"})
	for _, r := range rows(t) {
		_ = w.Write([]string{r.Time, r.Group, r.Field, r.Unit, labelText(r.Labels), strconv.FormatFloat(r.Value, 'f', -1, 64), r.Bound})
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// JSONL is a JSON document a line: points, slices and instants.
func JSONL(t *Timeline) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range rows(t) {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	for _, s := range t.Slices {
		if err := enc.Encode(map[string]any{"time": stamp(s.From), "end": stamp(s.To), "group": s.Group.Name, "slice": s.Name, "track": s.Track, "args": args(s.Args)}); err != nil {
			return nil, err
		}
	}
	for _, x := range t.Instants {
		if err := enc.Encode(map[string]any{"time": stamp(x.NS), "group": x.Group.Name, "event": x.Name, "track": x.Track, "args": args(x.Args)}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// OpenMetrics is what `promtool tsdb create-blocks-from openmetrics` takes: a
// family at a time, as the format wants it.
func OpenMetrics(t *Timeline) []byte {
	families := map[string][]*Series{}
	for _, s := range t.Series {
		if s.Prom != "" {
			families[s.Prom] = append(families[s.Prom], s)
		}
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(families)) {
		list := families[name]
		family, kind := name, list[0].Type
		if kind == "counter" {
			family = strings.TrimSuffix(name, "_total")
		}
		out = fmt.Appendf(out, "# TYPE %s %s\n", family, kind)
		for _, s := range list {
			var labels []string
			for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
				labels = append(labels, k+"="+strconv.Quote(s.Labels[k]))
			}
			head := name + "{" + strings.Join(labels, ",") + "} "
			for _, p := range s.Points {
				v := p.V
				if s.Factor != 0 {
					v *= s.Factor
				}
				out = append(out, head...)
				out = strconv.AppendFloat(out, v, 'g', -1, 64)
				out = fmt.Appendf(out, " %d.%03d\n", p.NS/1e9, p.NS/1e6%1000)
			}
		}
	}
	return append(out, "# EOF\n"...)
}
