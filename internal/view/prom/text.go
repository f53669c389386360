package prom

import (
	"math"
	"strconv"
	"strings"
)

// Format is how a page is written.
type Format int

// The formats that Prometheus reads.
const (
	Text        Format = iota // text/plain; version=0.0.4
	OpenMetrics               // application/openmetrics-text; version=1.0.0
)

// ContentType is the header of a page.
func (f Format) ContentType() string {
	if f == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// Negotiate picks the format for an Accept header.
func Negotiate(accept string) Format {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, _ := strings.Cut(part, ";")
		if strings.TrimSpace(kind) == "application/openmetrics-text" && !strings.Contains(params, "version=2") {
			return OpenMetrics
		}
	}
	return Text
}

// Page is a page being written.
type Page struct {
	Format Format
	b      []byte
	last   *Family
}

// Add writes a sample. Samples of a family must come one after the other.
func (p *Page) Add(f *Family, labels Labels, v float64) {
	if f != p.last {
		p.last = f
		p.head(f)
	}
	p.b = append(p.b, f.Name...)
	if len(labels) > 0 {
		p.b = append(labels.AppendText(append(p.b, '{')), '}')
	}
	p.b = append(appendValue(append(p.b, ' '), v), '\n')
}

func (p *Page) head(f *Family) {
	name := f.Name
	if p.Format == OpenMetrics && f.Type == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	line := func(keyword, value string) {
		p.b = append(append(append(append(append(p.b, "# "...), keyword...), ' '), name...), ' ')
		p.b = append(append(p.b, value...), '\n')
	}
	help := strings.ReplaceAll(f.Help, `\`, `\\`)
	if p.Format == OpenMetrics {
		help = strings.ReplaceAll(help, `"`, `\"`)
	}
	line("HELP", help)
	line("TYPE", f.Type)
	if unit := f.Unit(); unit != "" && p.Format == OpenMetrics {
		line("UNIT", unit)
	}
}

// appendValue writes a number as Prometheus does.
func appendValue(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Bytes ends the page.
func (p *Page) Bytes() []byte {
	if p.Format == OpenMetrics {
		return append(p.b, "# EOF\n"...)
	}
	return p.b
}
