package export

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/recording"
)

// Timeline is a recording as things over time.
type Timeline struct {
	Meta        recording.Meta
	First, Last time.Time
	Series      []*Series
	Slices      []Slice
	Instants    []Instant
}

// Group is where something belongs: a device, a process, or the host.
type Group struct {
	Name string // "device 0 n300", "process 4242 python"
	PID  int    // of a process; 0: none
}

// Series is a figure over time.
type Series struct {
	Group  Group
	Name   string            // "Power", "DRAM L"
	Field  string            // of the metric table, or what it is called there
	Unit   string            // "W", "B", "MHz", "°C"; empty: none
	Prom   string            // its name in Prometheus; empty: it has none
	Type   string            // there: gauge or counter
	Factor float64           // from the figure to Prometheus' unit
	Labels map[string]string // there
	Points []Point
	// Bounds is the companion of a figure that was not always exact; nil: it was.
	Bounds *Series
}

// Point is a value at a time. Whatever follows holds from its time on.
type Point struct {
	NS int64
	V  float64
}

// Slice is something that lasted.
type Slice struct {
	Group    Group
	Track    string // slices of one track do not overlap, unless one is in the other
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

// grain is how close two points of a series of blocks may be. Of those that
// are closer the highest and the last remain: peaks are never lost.
const grain = int64(time.Millisecond)

// addFast adds a point to a series with more points than anybody can see.
func (s *Series) addFast(ns int64, v float64) {
	n := len(s.Points)
	if n < 3 || ns/grain != s.Points[n-2].NS/grain || ns/grain != s.Points[n-1].NS/grain {
		s.Points = append(s.Points, Point{ns, v})
		return
	}
	// Two points of this grain are there: the highest and the last.
	if last := s.Points[n-1]; last.V > s.Points[n-2].V {
		s.Points[n-2] = last
	}
	s.Points[n-1] = Point{ns, v}
}

// sort puts things in order, so that the same recording gives the same file.
func (t *Timeline) sort() {
	slices.SortStableFunc(t.Series, func(a, b *Series) int {
		return cmp.Or(compareGroups(a.Group, b.Group), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field))
	})
	slices.SortStableFunc(t.Slices, func(a, b Slice) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	slices.SortStableFunc(t.Instants, func(a, b Instant) int { return cmp.Compare(a.NS, b.NS) })
}

func compareGroups(a, b Group) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
}
