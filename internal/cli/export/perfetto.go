package export

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// NewPerfetto writes a trace of Perfetto, in the protobuf of its schema
// (perfetto/trace/trace.proto). It is written by hand, as the profile of ttmon
// run is: the schema's own code would weigh more than ttmon. The tests read it
// back with Perfetto's.
//
// Times are Unix nanoseconds, and the trace says so in a snapshot of clocks.
// Devices and the host are tracks with tracks below them, processes are
// processes. Packets need not be in the order of time: Perfetto sorts them.
func NewPerfetto(w io.Writer, first time.Time) Sink {
	p := &perfetto{out: bufio.NewWriterSize(w, 256<<10), tracks: map[track]uint64{}, counters: map[*Series]uint64{}}
	p.clocks(first.UnixNano())
	return p
}

// Point implements Sink.
func (p *perfetto) Point(s *Series, x Point, bound model.Bound) {
	p.count(s, x)
	doubted, points := s.doubt(x.NS, bound)
	for _, x := range points {
		p.count(doubted, x)
	}
}

func (p *perfetto) count(s *Series, x Point) {
	p.event(x.NS, p.counter(s), typeCounter, "", func(m *message) { m.double(44, x.V) })
}

// Slice implements Sink.
func (p *perfetto) Slice(s *Slice) {
	p.begin(s)
	p.event(max(s.From, s.To), p.track(s.Group, s.Track), typeEnd, "", nil)
}

func (p *perfetto) begin(s *Slice) {
	p.event(s.From, p.track(s.Group, s.Track), typeBegin, s.Name, func(m *message) { m.args(s.Args) })
}

// Aligned implements Sink. Beginnings and ends are in the order of time, as tracks
// with slices in each other want them.
func (p *perfetto) Aligned(list []Slice) {
	for _, e := range edges(list) {
		s := &list[e.slice]
		if !e.end {
			p.begin(s)
			continue
		}
		p.event(max(s.From, s.To), p.track(s.Group, s.Track), typeEnd, "", nil)
	}
}

// Instant implements Sink.
func (p *perfetto) Instant(x *Instant) {
	p.event(x.NS, p.track(x.Group, x.Track), typeInstant, x.Name, func(m *message) {
		switch {
		case x.Flow != 0 && x.FlowEnd:
			m.fixed(48, x.Flow)
		case x.Flow != 0:
			m.fixed(47, x.Flow)
		}
		m.args(x.Args)
	})
}

// Close implements Sink.
func (p *perfetto) Close() error { return p.out.Flush() }

// Types of events, as the schema numbers them.
const (
	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	unitCount = 2
	unitBytes = 3

	clockRealtime = 1
	clockBoottime = 6
)

type track struct {
	group Group
	name  string
}

// perfetto is a trace on its way. Numbers of fields are those of the schema.
type perfetto struct {
	out      *bufio.Writer
	tracks   map[track]uint64
	counters map[*Series]uint64
	begun    bool
	packet   message
	body     message
	framed   message
}

// write writes a packet with one field.
func (p *perfetto) write(ns int64, field int, body message) {
	p.packet = p.packet[:0]
	if ns != 0 {
		p.packet.int(8, uint64(ns))
	}
	p.packet.int(10, 1) // the sequence
	if !p.begun {
		p.begun = true
		p.packet.int(13, 1) // it begins here
	}
	p.packet.bytes(field, body)
	p.framed = p.framed[:0]
	p.framed.bytes(1, p.packet)
	_, _ = p.out.Write(p.framed) // Close tells
}

// clocks says that times are those of the wall.
func (p *perfetto) clocks(ns int64) {
	var m message
	for _, id := range []uint64{clockBoottime, clockRealtime} {
		var c message
		c.int(1, id)
		c.int(2, uint64(ns))
		m.bytes(1, c)
	}
	p.write(ns, 6, m)
}

// group is the track of a group, below which its others are.
func (p *perfetto) group(g Group) uint64 {
	return p.describe(track{group: g}, func(m *message) {
		if g.PID == 0 {
			m.text(2, g.Name)
			return
		}
		var process message
		process.int(1, uint64(g.PID))
		process.text(6, g.Name)
		m.bytes(3, process)
	})
}

// describe makes a track, once.
func (p *perfetto) describe(key track, fill func(*message)) uint64 {
	if id, ok := p.tracks[key]; ok {
		return id
	}
	id := uint64(len(p.tracks) + 1)
	p.tracks[key] = id
	var m message
	m.int(1, id)
	fill(&m)
	p.write(0, 60, m)
	return id
}

func (p *perfetto) track(g Group, name string) uint64 {
	parent := p.group(g)
	return p.describe(track{g, name}, func(m *message) {
		m.text(2, name)
		m.int(5, parent)
	})
}

func (p *perfetto) counter(s *Series) uint64 {
	if id, ok := p.counters[s]; ok {
		return id
	}
	parent := p.group(s.Group)
	id := p.describe(track{s.Group, "counter " + s.Name}, func(m *message) {
		m.text(2, s.Name)
		m.int(5, parent)
		var c message
		switch s.Unit {
		case "B":
			c.int(3, unitBytes)
		case "":
			c.int(3, unitCount)
		default:
			c.text(6, s.Unit)
		}
		m.bytes(8, c)
	})
	p.counters[s] = id
	return id
}

func (p *perfetto) event(ns int64, id, kind uint64, name string, fill func(*message)) {
	p.body = p.body[:0]
	p.body.int(9, kind)
	p.body.int(11, id)
	if name != "" {
		p.body.text(23, name)
	}
	if fill != nil {
		fill(&p.body)
	}
	p.write(ns, 11, p.body)
}

// message is a protobuf message on its way.
type message []byte

func (m *message) int(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), v)
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) text(field int, s string) { m.bytes(field, []byte(s)) }

func (m *message) fixed(field int, v uint64) {
	*m = binary.LittleEndian.AppendUint64(binary.AppendUvarint(*m, uint64(field)<<3|1), v)
}

func (m *message) double(field int, v float64) { m.fixed(field, math.Float64bits(v)) }

// args are annotations of an event.
func (m *message) args(list []Arg) {
	for _, a := range list {
		var x message
		x.text(10, a.Name)
		x.text(6, a.Text)
		m.bytes(4, x)
	}
}
