package runreport

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/ttmon/ttmon/internal/model"
)

// JSON is the report for programs.
func JSON(r *Report) ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit is the verdict on each pool, in the form that CI systems read: one
// case for what was left behind (it fails above leak; nil: never), one for
// each limit.
func JUnit(r *Report, leak *uint64, limits map[model.Pool]uint64) ([]byte, error) {
	s := junitSuite{Name: "ttmon run", Time: fmt.Sprintf("%.3f", r.Seconds)}
	add := func(c Chip, name string, failure *junitFailure) {
		s.Cases = append(s.Cases, junitCase{Class: fmt.Sprintf("memory.chip%d", c.ID), Name: name, Failure: failure})
		if failure != nil {
			s.Failures++
		}
	}
	tooMuch := leak != nil && r.Left().Bytes > *leak
	for _, c := range r.Chips {
		for _, p := range c.Pools {
			var failure *junitFailure
			if tooMuch && p.Left.Blocks > 0 {
				failure = &junitFailure{Message: fmt.Sprintf("%d bytes in %d blocks left behind", p.Left.Bytes, p.Left.Blocks), Text: leftText(p)}
			}
			add(c, p.PoolName+" left behind", failure)
			if limit, ok := limits[p.Pool]; ok {
				failure = nil
				if p.Peak > limit {
					failure = &junitFailure{Message: fmt.Sprintf("peak of %d bytes, limit %d", p.Peak, limit)}
				}
				add(c, p.PoolName+" peak", failure)
			}
		}
	}
	s.Tests = len(s.Cases)
	b, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(b, '\n')...), err
}

func leftText(p Pool) string {
	var b bytes.Buffer
	for _, x := range ByLine(p.LeftBy) {
		if f, ok := x.Where(); ok {
			fmt.Fprintf(&b, "%s:%d %s: ", f.File, f.Line, f.Function)
		}
		if x.Tag != "" {
			fmt.Fprintf(&b, "[%s] ", x.Tag)
		}
		fmt.Fprintf(&b, "%d bytes in %d blocks\n", x.Bytes, x.Blocks)
	}
	return b.String()
}

// Profile is the account as a heap profile: what is held now or was left, what
// was held at the peak, and all that was ever allocated, by stack, with chip,
// pool and tag as labels.
func Profile(r *Report) ([]byte, error) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "alloc_objects", Unit: "count"},
			{Type: "alloc_space", Unit: "bytes"},
			{Type: "inuse_objects", Unit: "count"},
			{Type: "inuse_space", Unit: "bytes"},
			{Type: "peak_objects", Unit: "count"},
			{Type: "peak_space", Unit: "bytes"},
		},
		DefaultSampleType: "peak_space",
		TimeNanos:         r.Started.UnixNano(),
		DurationNanos:     int64(r.Seconds * 1e9),
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1,
	}
	frames := frameTable{profile: p, functions: map[Frame]*profile.Function{}, locations: map[Frame]*profile.Location{}}
	for _, c := range r.Chips {
		for _, pool := range c.Pools {
			add := func(x Place, values []int64) {
				labels := map[string][]string{"chip": {fmt.Sprint(c.ID)}, "pool": {pool.PoolName}}
				if x.Tag != "" {
					labels["tag"] = []string{x.Tag}
				}
				p.Sample = append(p.Sample, &profile.Sample{Location: frames.stack(x), Value: values, Label: labels})
			}
			for _, x := range pool.Places {
				add(x, []int64{int64(x.Total.Blocks), int64(x.Total.Bytes), int64(x.Held.Blocks), int64(x.Held.Bytes), 0, 0})
			}
			for _, x := range pool.AtPeak {
				add(x, []int64{0, 0, 0, 0, int64(x.Blocks), int64(x.Bytes)})
			}
		}
	}
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("making the profile: %w", err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, fmt.Errorf("writing the profile: %w", err)
	}
	return b.Bytes(), nil
}

type frameTable struct {
	profile   *profile.Profile
	functions map[Frame]*profile.Function
	locations map[Frame]*profile.Location
}

// stack is the frames of a place, innermost first; one without any is a frame
// that says so.
func (t *frameTable) stack(x Place) []*profile.Location {
	frames := x.Stack
	if len(frames) == 0 {
		frames = []Frame{{Function: "(no call site)"}}
	}
	if x.Tag != "" {
		frames = append(slices.Clone(frames), Frame{Function: "[" + x.Tag + "]"})
	}
	var out []*profile.Location
	for _, f := range frames {
		out = append(out, t.location(f))
	}
	return out
}

func (t *frameTable) location(f Frame) *profile.Location {
	if l := t.locations[f]; l != nil {
		return l
	}
	key := Frame{File: f.File, Function: f.Function}
	if key.Function == "<module>" { // pprof takes what is in brackets for parameters of a type
		key.Function = "module " + filepath.Base(f.File)
	}
	if key.Function == "" {
		key.Function = fmt.Sprintf("%s+%#x", f.File, f.Offset)
	}
	fn := t.functions[key]
	if fn == nil {
		fn = &profile.Function{ID: uint64(len(t.profile.Function) + 1), Name: key.Function, SystemName: key.Function, Filename: f.File}
		t.functions[key] = fn
		t.profile.Function = append(t.profile.Function, fn)
	}
	l := &profile.Location{ID: uint64(len(t.profile.Location) + 1), Line: []profile.Line{{Function: fn, Line: int64(f.Line)}}}
	t.locations[f] = l
	t.profile.Location = append(t.profile.Location, l)
	return l
}
