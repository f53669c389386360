package export

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

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

// chromeEvent is an event of Chrome's trace format.
type chromeEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Time  json.Number    `json:"ts,omitempty"` // microseconds
	Dur   json.Number    `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid,omitempty"`
	Scope string         `json:"s,omitempty"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Cat   string         `json:"cat,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Chrome appends the timeline as Chrome's JSON trace, which about:tracing and
// Perfetto's page open. Groups that are no process have numbers that none has.
func Chrome(dst []byte, t *Timeline) ([]byte, error) {
	c := chrome{out: append(dst, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":["...), groups: map[Group]int{}, tracks: map[track]int{}, start: t.First.UnixNano()}
	for _, s := range t.Series {
		pid := c.group(s.Group)
		name := s.Name
		if s.Unit != "" {
			name += ", " + s.Unit
		}
		for _, x := range s.Points {
			c.event(chromeEvent{Name: name, Phase: "C", Time: micro(x.NS - c.start), PID: pid, Args: map[string]any{"value": x.V}})
		}
	}
	for _, s := range t.Slices {
		c.event(chromeEvent{
			Name: s.Name, Phase: "X", Time: micro(s.From - c.start), Dur: micro(max(s.To-s.From, 0)),
			PID: c.group(s.Group), TID: c.track(s.Group, s.Track), Args: args(s.Args),
		})
	}
	for _, x := range t.Instants {
		e := chromeEvent{
			Name: x.Name, Phase: "i", Scope: "t", Time: micro(x.NS - c.start),
			PID: c.group(x.Group), TID: c.track(x.Group, x.Track), Args: args(x.Args),
		}
		if x.Flow != 0 { // flows join slices, so these last no time
			e.Phase, e.Scope, e.Dur = "X", "", "0"
		}
		c.event(e)
		if x.Flow != 0 {
			f := chromeEvent{Name: "block", Cat: "block", Phase: "s", Time: e.Time, PID: e.PID, TID: e.TID, ID: strconv.FormatUint(x.Flow, 10)}
			if x.FlowEnd {
				f.Phase, f.Bind = "f", "e"
			}
			c.event(f)
		}
	}
	return append(c.out, "\n]}\n"...), c.err
}

func args(list []Arg) map[string]any {
	if len(list) == 0 {
		return nil
	}
	out := map[string]any{}
	for _, a := range list {
		out[a.Name] = a.Text
	}
	return out
}

// micro is a time in microseconds, without losing the nanoseconds.
func micro(ns int64) json.Number {
	b := strconv.AppendInt(nil, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return json.Number(b)
}

type chrome struct {
	out    []byte
	groups map[Group]int
	tracks map[track]int
	start  int64
	some   bool
	err    error
}

func (c *chrome) event(e chromeEvent) {
	b, err := json.Marshal(e)
	if err != nil {
		c.err = err
		return
	}
	if c.some {
		c.out = append(c.out, ',')
	}
	c.some = true
	c.out = append(append(c.out, '\n'), b...)
}

// noProcess is where the numbers of groups begin that are no process.
const noProcess = 1 << 24

func (c *chrome) group(g Group) int {
	if pid, ok := c.groups[g]; ok {
		return pid
	}
	pid := g.PID
	if pid == 0 {
		pid = noProcess + len(c.groups)
	}
	c.groups[g] = pid
	c.event(chromeEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": g.Name}})
	return pid
}

func (c *chrome) track(g Group, name string) int {
	key := track{g, name}
	if tid, ok := c.tracks[key]; ok {
		return tid
	}
	tid := len(c.tracks) + 1
	c.tracks[key] = tid
	c.event(chromeEvent{Name: "thread_name", Phase: "M", PID: c.group(g), TID: tid, Args: map[string]any{"name": name}})
	return tid
}
