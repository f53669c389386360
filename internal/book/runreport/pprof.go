package runreport

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Profile is the account as a heap profile: what is held now or was left, what
// was held at the peak, and all that was ever allocated, by stack, with chip,
// pool and tag as labels. It is written here and not by pprof's own library,
// whose regular expressions would cost every start of ttmon a tenth of its
// time; the tests read it back with that library.
func Profile(r *runs.Run) ([]byte, error) {
	p := pprof{strings: map[string]int64{"": 0}, table: []string{""}, functions: map[runs.Frame]uint64{}, locations: map[runs.Frame]uint64{}}
	for _, t := range [][2]string{
		{"alloc_objects", "count"},
		{"alloc_space", "bytes"},
		{"inuse_objects", "count"},
		{"inuse_space", "bytes"},
		{"peak_objects", "count"},
		{"peak_space", "bytes"},
	} {
		p.out.message(1, p.valueType(t[0], t[1]))
	}
	for _, c := range r.Chips() {
		for _, pool := range model.Pools() {
			b := c.Pools[pool.String()].Blocks
			if b == nil {
				continue
			}
			labels := [][2]string{{"chip", c.ID}, {"pool", pool.String()}}
			for _, x := range b.Places {
				p.sample(x, labels, int64(x.Total.Blocks), int64(x.Total.Bytes), int64(x.Held.Blocks), int64(x.Held.Bytes), 0, 0)
			}
			for _, x := range b.AtPeak {
				p.sample(x, labels, 0, 0, 0, 0, int64(x.Blocks), int64(x.Bytes))
			}
		}
	}
	p.out.int(9, r.Start.UnixNano())
	p.out.int(10, int64(r.Took()))
	p.out.message(11, p.valueType("space", "bytes"))
	p.out.int(12, 1) // period
	p.out.int(14, p.string("peak_space"))
	for _, s := range p.table {
		p.out.bytes(6, []byte(s))
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(p.out); err != nil {
		return nil, fmt.Errorf("writing the profile: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing the profile: %w", err)
	}
	return b.Bytes(), nil
}

// pprof is a profile on its way. Numbers of fields are those of profile.proto.
type pprof struct {
	out       protobuf
	strings   map[string]int64
	table     []string
	functions map[runs.Frame]uint64
	locations map[runs.Frame]uint64
}

func (p *pprof) string(s string) int64 {
	i, ok := p.strings[s]
	if !ok {
		i = int64(len(p.table))
		p.strings[s] = i
		p.table = append(p.table, s)
	}
	return i
}

func (p *pprof) valueType(kind, unit string) (m protobuf) {
	m.int(1, p.string(kind))
	m.int(2, p.string(unit))
	return m
}

func (p *pprof) sample(x runs.Place, labels [][2]string, values ...int64) {
	var ids, packed, m protobuf
	for _, f := range stackOf(x) {
		ids = binary.AppendUvarint(ids, p.location(f))
	}
	for _, v := range values {
		packed = binary.AppendUvarint(packed, uint64(v))
	}
	m.bytes(1, ids)
	m.bytes(2, packed)
	if x.Tag != "" {
		labels = append(slices.Clip(labels), [2]string{"tag", x.Tag})
	}
	for _, l := range labels {
		var label protobuf
		label.int(1, p.string(l[0]))
		label.int(2, p.string(l[1]))
		m.message(3, label)
	}
	p.out.message(2, m)
}

// stackOf is the frames of a place, innermost first; one without any is a
// frame that says so.
func stackOf(x runs.Place) []runs.Frame {
	frames := x.Stack
	if len(frames) == 0 {
		frames = []runs.Frame{{Function: "(no call site)"}}
	}
	if x.Tag != "" {
		frames = append(slices.Clone(frames), runs.Frame{Function: "[" + x.Tag + "]"})
	}
	return frames
}

func (p *pprof) location(f runs.Frame) uint64 {
	if id, ok := p.locations[f]; ok {
		return id
	}
	var line, m protobuf
	line.int(1, int64(p.function(f)))
	line.int(2, int64(f.Line))
	id := uint64(len(p.locations) + 1)
	m.int(1, int64(id))
	m.message(4, line)
	p.out.message(4, m)
	p.locations[f] = id
	return id
}

func (p *pprof) function(f runs.Frame) uint64 {
	key := runs.Frame{File: f.File, Function: f.Function}
	if key.Function == "<module>" { // pprof takes what is in brackets for parameters of a type
		key.Function = "module " + filepath.Base(f.File)
	}
	if key.Function == "" {
		key.Function = fmt.Sprintf("%s+%#x", f.File, f.Offset)
	}
	if id, ok := p.functions[key]; ok {
		return id
	}
	id := uint64(len(p.functions) + 1)
	var m protobuf
	m.int(1, int64(id))
	m.int(2, p.string(key.Function))
	m.int(3, p.string(key.Function))
	m.int(4, p.string(f.File))
	p.out.message(5, m)
	p.functions[key] = id
	return id
}

// protobuf is a message on its way.
type protobuf []byte

func (m *protobuf) int(field int, v int64) {
	if v != 0 {
		*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), uint64(v))
	}
}

func (m *protobuf) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b)))
	*m = append(*m, b...)
}

func (m *protobuf) message(field int, b protobuf) { m.bytes(field, b) }
