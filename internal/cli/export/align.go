package export

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/cli/metaltrace"
	"github.com/ttmon/ttmon/internal/field/words"
)

// Align puts a trace of tt-metal on the clock of a recording. Each of its clocks is
// laid so that its first event is at start; where that is not given, so that its
// last one is when the file was written. how is how that was done, for people.
func Align(trace *metaltrace.Trace, start time.Time) (list []Slice, how string) {
	first, last := map[string]int64{}, map[string]int64{}
	for i := range trace.Slices {
		s := &trace.Slices[i]
		if n, ok := first[s.Clock]; !ok || s.From < n {
			first[s.Clock] = s.From
		}
		last[s.Clock] = max(last[s.Clock], s.To)
	}
	offset := func(clock string) int64 { return start.UnixNano() - first[clock] }
	how = "its first event is at the time that was given"
	if start.IsZero() {
		offset = func(clock string) int64 { return trace.Written.UnixNano() - last[clock] }
		how = "its last event is when the file was written, so it is late by up to a second or so; order and durations are exact"
	}
	if trace.Kind == metaltrace.GraphReport {
		how += "; a graph report has durations only, gaps between ops are not in it"
	}
	for i := range trace.Slices {
		s := &trace.Slices[i]
		x := Slice{Group: Group{Name: words.Escape(s.Group)}, Track: words.Escape(s.Track), Name: words.Escape(s.Name), From: s.From + offset(s.Clock), To: s.To + offset(s.Clock)}
		for j := 0; j+1 < len(s.Args); j += 2 {
			x.Args = append(x.Args, Arg{s.Args[j], words.Escape(s.Args[j+1])})
		}
		list = append(list, x)
	}
	if trace.Dropped > 0 {
		how += fmt.Sprintf("; %d events have no beginning or no end and are left out", trace.Dropped)
	}
	return list, how
}
