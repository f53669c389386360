package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

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

// NewChrome writes Chrome's JSON trace, which about:tracing and Perfetto's page
// open. Groups that are no process have numbers that none has. first is the time
// that the trace begins at.
func NewChrome(w io.Writer, first time.Time) Sink {
	c := &chrome{out: bufio.NewWriterSize(w, 256<<10), groups: map[Group]int{}, tracks: map[track]int{}, start: first.UnixNano()}
	// Without displayTimeUnit: Perfetto takes that for the unit of all times.
	_, _ = c.out.WriteString(`{"traceEvents":[`) // Close tells
	return c
}

// Point implements Sink.
func (c *chrome) Point(s *Series, p Point, bound model.Bound) {
	c.count(s, p)
	doubted, points := s.doubt(p.NS, bound)
	for _, p := range points {
		c.count(doubted, p)
	}
}

func (c *chrome) count(s *Series, p Point) {
	name := s.Name
	if s.Unit != "" {
		name += ", " + s.Unit
	}
	c.event(&chromeEvent{Name: name, Phase: "C", Time: micro(p.NS - c.start), PID: c.group(s.Group), Args: map[string]any{"value": p.V}})
}

// Slice implements Sink.
func (c *chrome) Slice(s *Slice) {
	c.event(&chromeEvent{
		Name: s.Name, Phase: "X", Time: micro(s.From - c.start), Dur: micro(max(s.To-s.From, 0)),
		PID: c.group(s.Group), TID: c.track(s.Group, s.Track), Args: args(s.Args),
	})
}

// Aligned implements Sink.
func (c *chrome) Aligned(list []Slice) {
	for i := range list {
		c.Slice(&list[i])
	}
}

// Instant implements Sink.
func (c *chrome) Instant(x *Instant) {
	e := chromeEvent{
		Name: x.Name, Phase: "i", Scope: "t", Time: micro(x.NS - c.start),
		PID: c.group(x.Group), TID: c.track(x.Group, x.Track), Args: args(x.Args),
	}
	if x.Flow == 0 {
		c.event(&e)
		return
	}
	e.Phase, e.Scope, e.Dur = "X", "", "0" // flows join slices, so these last no time
	c.event(&e)
	f := chromeEvent{Name: "block", Cat: "block", Phase: "s", Time: e.Time, PID: e.PID, TID: e.TID, ID: strconv.FormatUint(x.Flow, 10)}
	if x.FlowEnd {
		f.Phase, f.Bind = "f", "e"
	}
	c.event(&f)
}

// Close implements Sink.
func (c *chrome) Close() error {
	_, _ = c.out.WriteString("\n]}\n")
	return errors.Join(c.err, c.out.Flush())
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

// micro is a time in microseconds, without losing the nanoseconds. It is
// negative for what another trace has from before the recording.
func micro(ns int64) json.Number {
	var b []byte
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return json.Number(b)
}

type chrome struct {
	out    *bufio.Writer
	groups map[Group]int
	tracks map[track]int
	start  int64
	some   bool
	err    error
}

func (c *chrome) event(e *chromeEvent) {
	b, err := json.Marshal(e)
	if err != nil {
		c.err = err
		return
	}
	if c.some {
		_ = c.out.WriteByte(',')
	}
	c.some = true
	_ = c.out.WriteByte('\n')
	_, _ = c.out.Write(b)
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
	c.event(&chromeEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": g.Name}})
	return pid
}

func (c *chrome) track(g Group, name string) int {
	key := track{g, name}
	if tid, ok := c.tracks[key]; ok {
		return tid
	}
	tid := len(c.tracks) + 1
	c.tracks[key] = tid
	c.event(&chromeEvent{Name: "thread_name", Phase: "M", PID: c.group(g), TID: tid, Args: map[string]any{"name": name}})
	return tid
}
