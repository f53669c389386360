package export

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Sink writes a format to a file. It receives what a recording holds as
// it comes, in the order of time as far as that can be: slices come when they
// end, points of blocks up to a grain late. It keeps no more than a few of them.
type Sink interface {
	// Point is a figure at a time, and how it is to be read.
	Point(s *Series, p Point, bound model.Bound)
	// Slice lasted up to about now. Those of one track do not overlap.
	Slice(s *Slice)
	Instant(x *Instant)
	// Aligned are the slices of another trace, which may lie in each other.
	Aligned(list []Slice)
	// Close writes the rest, and tells what went wrong.
	Close() error
}

// pointsOnly is the part of a Sink that has nothing but points.
type pointsOnly struct{}

func (pointsOnly) Slice(*Slice)     {}
func (pointsOnly) Instant(*Instant) {}
func (pointsOnly) Aligned([]Slice)  {}

// Group is where something belongs: a device, a process, or the host.
type Group struct {
	Name string // "device 0 n300", "python"
	PID  int    // of a process; 0: none
}

// String tells it apart from all others. Viewers of traces do so by themselves:
// they are given the name of a process, and its pid.
func (g Group) String() string {
	if g.PID == 0 {
		return g.Name
	}
	return fmt.Sprintf("process %d %s", g.PID, g.Name)
}

// Series is a figure over time.
type Series struct {
	Group     Group
	Name      string            // "Power", "DRAM L"
	Field     string            // of the metric table, or what it is called there
	Unit      string            // as the metric table has it: "W", "B", "MHz", "C"; empty: none
	Prom      string            // its name in Prometheus; empty: it has none
	PromBound string            // of the series there that says how it is to be read; empty: none
	Type      string            // there: gauge or counter
	Factor    float64           // from the figure to Prometheus' unit
	Labels    map[string]string // there

	first   int64   // ns of its first point
	doubted *Series // says how it is to be read, since it was first not exact
	said    model.Bound
}

// Point is a value at a time. Whatever follows holds from its time on.
type Point struct {
	NS int64
	V  float64
}

// Slice is something that lasted.
type Slice struct {
	Group    Group
	Track    string
	Name     string
	From, To int64 // Unix ns
	Args     []Arg
}

// Instant is something that happened. Those with the same flow belong together.
type Instant struct {
	Group   Group
	Track   string
	Name    string
	NS      int64
	Flow    uint64 // 0: none
	FlowEnd bool   // it is the last of its flow
	Args    []Arg
}

// Arg is a detail, for who clicks on something.
type Arg struct {
	Name string
	Text string
}

// doubt is what a trace has to be told beside a point: the series that says how
// it is to be read, where that changed. Before it was first not exact there is
// none.
func (s *Series) doubt(ns int64, bound model.Bound) (c *Series, points []Point) {
	if s.first == 0 {
		s.first = ns
	}
	if s.doubted == nil {
		if bound == model.Exact {
			return nil, nil
		}
		s.doubted = &Series{Group: s.Group, Name: s.Name + ": 0 exact, 1 at least, 2 unsure", Field: s.Field + ".bound"}
		if s.first < ns {
			points = append(points, Point{s.first, 0})
		}
	} else if bound == s.said {
		return nil, nil
	}
	s.said = bound
	return s.doubted, append(points, Point{ns, float64(boundNumber(bound))})
}

// boundNumber encodes a bound for formats that have only numbers.
func boundNumber(b model.Bound) int {
	switch b {
	case model.Exact:
		return 0
	case model.AtLeast:
		return 1
	}
	return 2
}

// grainOf is how close two points of a series of blocks may be in a recording
// of a length, with so many chips. Of those that are closer the highest and the
// last remain: peaks are never lost, and an hour of 10 000 allocations a second
// can be opened: on 32 chips it has less than a million points.
func grainOf(length time.Duration, chips int) int64 {
	const each, all = 50_000, 400_000
	return max(time.Millisecond, length/max(1, min(each, all/time.Duration(max(chips, 1))))).Nanoseconds()
}

// grain are the points of a series that are closer than a grain.
type grain struct {
	high, last Point
	some       bool
}

func (g *grain) add(p Point) {
	if !g.some || p.V >= g.high.V {
		g.high = p
	}
	g.last, g.some = p, true
}

// take empties it.
func (g *grain) take(to func(Point)) {
	if !g.some {
		return
	}
	if g.high != g.last {
		to(g.high)
	}
	to(g.last)
	g.some = false
}

// edge is a beginning or an end of a slice.
type edge struct {
	ns    int64
	end   bool
	slice int
	depth int64 // of slices that begin together the longest is first; of those that end, the shortest
}

// edges are the beginnings and ends of slices in the order of time.
func edges(list []Slice) []edge {
	out := make([]edge, 0, 2*len(list))
	for i := range list {
		s := &list[i]
		long := s.To - s.From
		out = append(out, edge{s.From, false, i, -long}, edge{max(s.To, s.From), true, i, long})
	}
	slices.SortStableFunc(out, func(a, b edge) int {
		ends := 0
		if a.end != b.end && a.slice != b.slice { // what ends makes room for what begins
			if ends = 1; a.end {
				ends = -1
			}
		}
		return cmp.Or(cmp.Compare(a.ns, b.ns), ends, cmp.Compare(a.depth, b.depth))
	})
	return out
}
