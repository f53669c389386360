package recording

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/book/launches"
)

// Programs are programs of a process on a chip, in the order in which the chip
// reported them. Their record has the time when they became known; each program has
// its own.
//
// In the file: pid, start ticks, the process's number of the chip, the chip, lost on
// the chip, lost in the process, flags (1: an unknown number is missing), the name of
// the process, the number of names and the names; then the number of programs, and of
// each the ns from the end of the one before (signed; of the first to the time of the
// record), its length in ns, and which name. All are varints, texts with their length.
type Programs struct {
	PID     int
	Start   uint64 // of the process, in clock ticks
	Process string // its name
	Chip    uint64 // 0: not known
	Number  uint32 // that the process has for the chip
	// Missed is how many programs of the chip are missing before these.
	Missed uint64
	// Lost is how many programs of the process were not read since the last record,
	// on any of its chips.
	Lost uint64
	// Broken: an unknown number of programs may be missing before these.
	Broken bool
	List   []launches.Program
}

// missesUnknown is a flag of the record.
const missesUnknown = 1

// Programs adds programs that ran.
func (e *Encoder) Programs(t time.Time, p *Programs) error {
	ns := max(t.UnixNano(), e.last) // the time that the record gets
	return e.Add(KindPrograms, time.Unix(0, ns), appendPrograms(nil, ns, p))
}

func appendPrograms(b []byte, ns int64, p *Programs) []byte {
	flags := uint64(0)
	if p.Broken {
		flags = missesUnknown
	}
	for _, v := range []uint64{uint64(p.PID), p.Start, uint64(p.Number), p.Chip, p.Missed, p.Lost, flags} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendText(b, p.Process)
	names := launches.NewNames(p.List)
	b = binary.AppendUvarint(b, uint64(len(names.List)))
	for _, name := range names.List {
		b = appendText(b, name)
	}
	b = binary.AppendUvarint(b, uint64(len(p.List)))
	for i := range p.List {
		x := &p.List[i]
		b = binary.AppendVarint(b, x.Start-ns)
		b = binary.AppendUvarint(b, uint64(x.Length))
		b = binary.AppendUvarint(b, uint64(names.Index(x.Name)))
		ns = x.End()
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// maxProgramTime is a time that no program reaches, in Unix ns.
const maxProgramTime = math.MaxInt64 / 4

// decodePrograms reads a record; ok is false where it makes no sense.
func decodePrograms(ns int64, body []byte) (p *Programs, ok bool) {
	c := cursor{b: body}
	p = &Programs{PID: int(c.uint()), Start: c.uint(), Number: uint32(c.uint()), Chip: c.uint(), Missed: c.uint(), Lost: c.uint(), Broken: c.uint()&missesUnknown != 0}
	p.Process = string(c.bytes(c.uint()))
	names := make([]string, 0, 8)
	for n := c.uint(); n > 0 && !c.bad; n-- {
		names = append(names, string(c.bytes(c.uint())))
	}
	n := c.uint()
	if c.bad || n > uint64(len(c.b)) {
		return nil, false
	}
	p.List = make([]launches.Program, 0, n)
	for range n {
		pause, length, name := c.int(), c.uint(), c.uint()
		if c.bad || pause > maxProgramTime || pause < -maxProgramTime || length > maxProgramTime || name >= uint64(len(names)) {
			return nil, false
		}
		x := launches.Program{Start: ns + pause, Length: int64(length), Name: names[name]}
		if ns = x.End(); x.Start < 0 || ns > maxProgramTime {
			return nil, false
		}
		p.List = append(p.List, x)
	}
	return p, true
}
