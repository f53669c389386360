package promapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// queryResult is a value whose memory the engine takes back after it is written.
type queryResult struct {
	value parser.Value
	query promql.Query
}

func writeData(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	b := []byte(`{"status":"success","data":`)
	if q, ok := data.(*queryResult); ok {
		b = append(b, `{"resultType":"`...)
		b = append(b, q.value.Type()...)
		b = append(b, `","result":`...)
		b = appendValue(b, q.value)
		b = append(b, '}')
		q.query.Close()
	} else {
		text, err := json.Marshal(data)
		if err != nil {
			writeError(w, err)
			return
		}
		b = append(b, text...)
	}
	_, _ = w.Write(append(b, "}\n"...))
}

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{http.StatusInternalServerError, "internal", err}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": e.kind, "error": err.Error()})
}

func appendValue(b []byte, v parser.Value) []byte {
	switch v := v.(type) {
	case promql.Matrix:
		b = append(b, '[')
		for i := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendLabels(append(b, `{"metric":`...), v[i].Metric), `,"values":[`...)
			for j, p := range v[i].Floats {
				if j > 0 {
					b = append(b, ',')
				}
				b = appendPoint(b, p.T, p.F)
			}
			b = append(b, "]}"...)
		}
		return append(b, ']')
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
	return append(b, text...)
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
