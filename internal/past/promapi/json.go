package promapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ttmon/ttmon/internal/field/wire"
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
		before := "["
		for i := range matrix {
			if _, err := out.WriteString(before); err != nil {
				return // the client has left, or does not read
			}
			writeSeries(out, &matrix[i])
			before = ","
		}
		if len(matrix) == 0 {
			_ = out.WriteByte('[')
		}
		_ = out.WriteByte(']')
	} else {
		writeJSON(out, v)
	}
	_, _ = out.WriteString("}}\n")
}

// writeSeries writes a series. The engine's own form of a point takes six times as long.
func writeSeries(out *bufio.Writer, s *promql.Series) {
	_, _ = out.WriteString(`{"metric":`)
	writeJSON(out, s.Metric)
	before := `,"values":[[`
	var b []byte
	for _, p := range s.Floats {
		b = strconv.AppendFloat(append(b[:0], before...), float64(p.T)/1000, 'f', -1, 64)
		b = append(strconv.AppendFloat(append(b, `,"`...), p.F, 'f', -1, 64), `"]`...)
		_, _ = out.Write(b)
		before = ",["
	}
	if len(s.Floats) == 0 {
		_, _ = out.WriteString(`,"values":[`)
	}
	_, _ = out.WriteString("]}")
}

// writeJSON writes what a part of a result is in JSON.
func writeJSON(out *bufio.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error()) // the engine's types have a form for every number
	}
	_, _ = out.Write(wire.Harmless(text))
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
