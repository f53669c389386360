package export

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// openMetrics keeps the samples of each family in a file of its own until the
// end: the format wants a family at a time, and a recording has them a moment
// at a time.
type openMetrics struct {
	pointsOnly
	to       io.Writer
	families map[string]*family
	heads    map[*Series][2]string // of its samples, and of those that say how they are to be read
	line     []byte
	err      error
}

type family struct {
	kind string
	file *os.File
	out  *bufio.Writer
}

// NewOpenMetrics writes what `promtool tsdb create-blocks-from openmetrics`
// takes. Of what is no series there nothing is written.
func NewOpenMetrics(w io.Writer) Sink {
	return &openMetrics{to: w, families: map[string]*family{}, heads: map[*Series][2]string{}}
}

// Point implements Sink.
func (o *openMetrics) Point(s *Series, p Point, bound model.Bound) {
	if s.Prom == "" || o.err != nil {
		return
	}
	heads, ok := o.heads[s]
	if !ok {
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			labels = append(labels, k+"="+strconv.Quote(s.Labels[k]))
		}
		text := "{" + strings.Join(labels, ",") + "} "
		heads = [2]string{s.Prom + text, s.PromBound + text}
		o.heads[s] = heads
	}
	v := p.V
	if s.Factor != 0 {
		v *= s.Factor
	}
	o.sample(s.Prom, s.Type, heads[0], v, p.NS)
	if s.PromBound != "" {
		o.sample(s.PromBound, "gauge", heads[1], float64(boundNumber(bound)), p.NS)
	}
}

func (o *openMetrics) sample(name, kind, head string, v float64, ns int64) {
	f := o.families[name]
	if f == nil {
		file, err := os.CreateTemp("", "ttmon-export-*")
		if err != nil {
			o.err = err
			return
		}
		_ = os.Remove(file.Name()) // it is gone with its descriptor, however this ends
		f = &family{kind: kind, file: file, out: bufio.NewWriterSize(file, 64<<10)}
		o.families[name] = f
	}
	o.line = append(o.line[:0], head...)
	o.line = strconv.AppendFloat(o.line, v, 'g', -1, 64)
	o.line = fmt.Appendf(o.line, " %d.%03d\n", ns/1e9, ns/1e6%1000)
	_, _ = f.out.Write(o.line) // Close tells
}

// Close implements Sink.
func (o *openMetrics) Close() error {
	err := o.err
	for _, name := range slices.Sorted(maps.Keys(o.families)) {
		f := o.families[name]
		if err == nil {
			err = f.copy(name, o.to)
		}
		f.file.Close()
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.to, "# EOF\n")
	return err
}

// copy writes a family out.
func (f *family) copy(name string, to io.Writer) error {
	if f.kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	if err := f.out.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(to, "# TYPE %s %s\n", name, f.kind); err != nil {
		return err
	}
	_, err := io.Copy(to, f.file)
	return err
}
