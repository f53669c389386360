// Package vendor reads tt-telemetry, Tenstorrent's own exporter of metrics: the only
// harmless way to values of chips behind Ethernet, and to link and memory counters
// where ttmond reads no chip. The exporter opens the chips itself; asking it costs
// them nothing. It is asked only where the configuration names its address.
package vendor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxBody bounds what an exporter may answer: that of 32 chips has about 1 MiB.
const maxBody = 16 << 20

// oldest is how old a sample of the exporter may be: it continues to publish values
// of chips that it no longer reads, with their time.
const oldest = time.Minute

// place is where the exporter has a chip.
type place struct{ tray, chip int }

// sample is one answer of the exporter.
type sample struct {
	at    time.Time
	chips map[place]*chip
}

// chip is what an answer says of one chip, by name of the metric.
type chip struct {
	values   map[string]float64
	channels map[int]map[string]float64 // of Ethernet
	modules  map[int]map[string]float64 // of GDDR
}

// moduleLabels are the names under which releases of the exporter number GDDR
// modules.
var moduleLabels = []string{"module", "dram", "dram_module", "gddr"}

// parse reads an answer. Metrics that are not of a chip are skipped, and so are
// values that cannot be, or are too old.
func parse(r io.Reader, now time.Time) (*sample, error) {
	text, err := withoutComments(io.LimitReader(r, maxBody))
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	s := &sample{at: now, chips: map[place]*chip{}}
	for name, family := range families {
		if !strings.HasPrefix(name, "tt_") {
			continue
		}
		for _, m := range family.GetMetric() {
			s.add(name, m, now)
		}
	}
	if len(s.chips) == 0 {
		return nil, fmt.Errorf("none of its %d metrics is of a chip: it is not tt-telemetry, or has found no chip", len(families))
	}
	return s, nil
}

// withoutComments leaves types and descriptions out: the exporter calls everything a
// gauge, and describes a metric twice if it has it as two kinds of numbers, which is
// an error of the format.
func withoutComments(r io.Reader) (io.Reader, error) {
	var out bytes.Buffer
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && line[0] != '#' {
			out.Write(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			out.WriteByte('\n')
			return &out, nil
		case err != nil:
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
	}
}

func (s *sample) add(name string, m *dto.Metric, now time.Time) {
	v, ok := value(m)
	if t := m.GetTimestampMs(); t != 0 && now.Sub(time.UnixMilli(t)) > oldest {
		ok = false
	}
	at, channel, module := place{tray: -1, chip: -1}, -1, -1
	for _, l := range m.GetLabel() {
		n, err := strconv.Atoi(l.GetValue())
		if err != nil || n < 0 || n > 255 {
			continue
		}
		switch key := l.GetName(); {
		case key == "tray":
			at.tray = n
		case key == "chip":
			at.chip = n
		case key == "channel":
			channel = n
		case slices.Contains(moduleLabels, key):
			module = n
		}
	}
	if !ok || at.tray < 0 || at.chip < 0 {
		return
	}
	c := s.chips[at]
	if c == nil {
		c = &chip{values: map[string]float64{}, channels: map[int]map[string]float64{}, modules: map[int]map[string]float64{}}
		s.chips[at] = c
	}
	switch {
	case channel >= 0:
		setValue(c.channels, channel, name, v)
	case module >= 0:
		setValue(c.modules, module, name, v)
	default:
		c.values[name] = v
	}
}

func setValue(of map[int]map[string]float64, n int, name string, v float64) {
	if of[n] == nil {
		of[n] = map[string]float64{}
	}
	of[n][name] = v
}

// value is the number of a gauge, counter or untyped metric.
func value(m *dto.Metric) (v float64, ok bool) {
	switch {
	case m.Gauge != nil:
		v = m.Gauge.GetValue()
	case m.Counter != nil:
		v = m.Counter.GetValue()
	case m.Untyped != nil:
		v = m.Untyped.GetValue()
	default:
		return 0, false
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0) && v >= -273.15
}
