package export

import (
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Every program that was recorded is a slice on a track of its chip, by process. A
// start is as true as internal/book/launches says, a length is the chip's own. When the
// host enqueued a program is not known, so no flow leads to it.

// placed is where a chip is: on which device, and under which name there.
type placed struct {
	group Group
	name  string // empty: the only one
}

// ranKey is a process on a chip.
type ranKey struct {
	pid    int
	start  uint64
	chip   uint64
	number uint32
}

// maxLanes is how many programs of a process on a chip may run at a time. A chip has
// that many sub-devices at most; more are not believed.
const maxLanes = 8

// lanes are tracks of a chip's programs. Those that run at the same time, on parts of
// a chip, are on different ones.
type lanes struct {
	group Group
	name  string
	ends  []int64 // of the last program on each
}

// place notes where the chips of a device are.
func (b *builder) place(group Group, d *model.Device) {
	for i := range d.Chips {
		c := &d.Chips[i]
		if id, known := c.ID.Get(); known {
			name := ""
			if len(d.Chips) > 1 {
				name = words.Escape(c.Name)
			}
			b.places[id] = placed{group, name}
		}
	}
}

// ran adds the programs of a record.
func (b *builder) ran(p *recording.Programs, ns int64) {
	if p == nil {
		return
	}
	l := b.lanesOf(p)
	first := ns
	if len(p.List) > 0 {
		first = p.List[0].Start
	}
	mark := func(at int64, text string) {
		b.to.Instant(&Instant{Group: l.group, Track: l.track(0), Name: text, NS: at})
	}
	if p.Missed > 0 {
		mark(first, words.Count(int(min(p.Missed, 1<<62)), "program")+" lost here")
	}
	if p.Broken {
		mark(first, "programs may be missing before this")
	}
	if p.Lost > 0 {
		mark(first, words.Count(int(min(p.Lost, 1<<62)), "program")+" of the process lost, on any of its chips")
	}
	crowded := 0
	for i := range p.List {
		if !b.program(l, &p.List[i]) {
			crowded++
		}
	}
	if crowded > 0 {
		mark(ns, fmt.Sprintf("%s left out: reported as running at the same time as %d others", words.Count(crowded, "program"), maxLanes))
	}
}

// program adds a slice; it reports whether there is room for it.
func (b *builder) program(l *lanes, p *launches.Program) bool {
	n := 0
	for n < len(l.ends) && l.ends[n] > p.Start {
		n++
	}
	if n == maxLanes {
		return false
	}
	if n == len(l.ends) {
		l.ends = append(l.ends, 0)
	}
	l.ends[n] = p.End()
	name := "(name unknown)"
	if p.Name != "" {
		name = words.Escape(p.Name)
	}
	b.to.Slice(&Slice{Group: l.group, Track: l.track(n), Name: name, From: p.Start, To: p.End()})
	return true
}

// lanesOf are the tracks of a process on a chip. They stay where they were begun.
func (b *builder) lanesOf(p *recording.Programs) *lanes {
	key := ranKey{p.PID, p.Start, p.Chip, p.Number}
	l := b.lanes[key]
	if l != nil {
		return l
	}
	who := words.Escape(p.Process) + " " + strconv.Itoa(p.PID)
	at, known := b.places[p.Chip]
	switch {
	case p.Chip == 0 || !known:
		l = &lanes{group: processGroup(p.PID, p.Process), name: "programs on its chip " + strconv.Itoa(int(p.Number))}
	case at.name == "":
		l = &lanes{group: at.group, name: "programs of " + who}
	default:
		l = &lanes{group: at.group, name: "programs on " + at.name + " of " + who}
	}
	b.lanes[key] = l
	return l
}

// track is the name of a lane.
func (l *lanes) track(n int) string {
	if n == 0 {
		return l.name
	}
	return l.name + ", at the same time " + strconv.Itoa(n+1)
}
