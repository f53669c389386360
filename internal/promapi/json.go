package promapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ttmon/ttmon/internal/wire"
)

// queryResult is a value whose memory the engine takes back after it is written.
type queryResult struct {
	value parser.Value
	query promql.Query
}

func writeData(w http.ResponseWriter, data any) {
	if h, ok := data.(*held); ok {
		defer h.end()
		data = h.data
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	out := bufio.NewWriterSize(w, 64<<10)
	defer out.Flush()
	if q, ok := data.(*queryResult); ok {
		defer q.query.Close()
		writeResult(out, q.value)
		return
	}
	text, err := json.Marshal(data)
	if err != nil {
		writeError(w, err)
		return
	}
	_, _ = out.WriteString(`{"status":"success","data":`)
	_, _ = out.Write(wire.Harmless(text))
	_, _ = out.WriteString("}\n")
}

// writeResult writes a value, a series at a time: the text is larger than the
// numbers.
func writeResult(out *bufio.Writer, v parser.Value) {
	fmt.Fprintf(out, `{"status":"success","data":{"resultType":"%s","result":`, v.Type())
	if matrix, ok := v.(promql.Matrix); ok {
		var b []byte
		for i := range matrix {
			b = appendSeries(append(b[:0], separator(i)), &matrix[i])
			if _, err := out.Write(b); err != nil {
				return // the client has left, or does not read
			}
		}
		if len(matrix) == 0 {
			_ = out.WriteByte('[')
		}
		_ = out.WriteByte(']')
	} else {
		_, _ = out.Write(appendValue(nil, v))
	}
	_, _ = out.WriteString("}}\n")
}

// separator is what stands before the i-th member of a list.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

func appendSeries(b []byte, s *promql.Series) []byte {
	b = append(appendLabels(append(b, `{"metric":`...), s.Metric), `,"values":[`...)
	for j, p := range s.Floats {
		if j > 0 {
			b = append(b, ',')
		}
		b = appendPoint(b, p.T, p.F)
	}
	return append(b, "]}"...)
}

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{http.StatusInternalServerError, "internal", err}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	text, _ := json.Marshal(map[string]string{"status": "error", "errorType": e.kind, "error": err.Error()})
	_, _ = w.Write(append(wire.Harmless(text), '\n'))
}

func appendValue(b []byte, v parser.Value) []byte {
	switch v := v.(type) {
	case promql.Vector:
		b = append(b, '[')
		for i := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendLabels(append(b, `{"metric":`...), v[i].Metric), `,"value":`...)
			b = append(appendPoint(b, v[i].T, v[i].F), '}')
		}
		return append(b, ']')
	case promql.Scalar:
		return appendPoint(b, v.T, v.V)
	case promql.String:
		b = appendTime(append(b, '['), v.T)
		return append(appendString(append(b, ','), v.V), ']')
	}
	return append(b, "null"...)
}

func appendLabels(b []byte, l labels.Labels) []byte {
	b = append(b, '{')
	first := true
	l.Range(func(l labels.Label) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, l.Name), ':')
		b = appendString(b, l.Value)
	})
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s)
	return append(b, wire.Harmless(text)...)
}

// appendPoint writes [seconds,"value"].
func appendPoint(b []byte, ms int64, v float64) []byte {
	b = append(appendTime(append(b, '['), ms), `,"`...)
	switch {
	case math.IsInf(v, 1):
		b = append(b, "+Inf"...)
	case math.IsInf(v, -1):
		b = append(b, "-Inf"...)
	default:
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, `"]`...)
}

func appendTime(b []byte, ms int64) []byte {
	return strconv.AppendFloat(b, float64(ms)/1000, 'f', -1, 64)
}
