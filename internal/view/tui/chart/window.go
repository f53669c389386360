package chart

import "time"

// Window is the time a chart shows.
type Window struct {
	End  time.Time // of the newest dot column
	Span time.Duration
}

// Step is the time of one of n dot columns.
func (w Window) Step(n int) time.Duration {
	return max(w.Span/time.Duration(max(n, 1)), time.Millisecond)
}

// From is the time at which the first of n dot columns begins. It is a
// multiple of the step, so that a line that moves on keeps its shape.
func (w Window) From(n int) time.Time {
	step := w.Step(n)
	return w.End.Truncate(step).Add(-time.Duration(n-1) * step)
}

// spans are the lengths of time that zooming goes through.
var spans = []time.Duration{
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour,
}

// growing are the lengths that a young run is shown in: each fills at least
// two thirds of the next.
var growing = []time.Duration{
	60 * time.Second, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
	7 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, 45 * time.Minute,
	time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour,
	12 * time.Hour, 16 * time.Hour, 24 * time.Hour, 36 * time.Hour, 2 * 24 * time.Hour, 3 * 24 * time.Hour,
}

// Grow is the span to show of a run that has lasted for some time: no longer
// than the one chosen, and no longer than it takes for the lines to fill it.
func Grow(chosen, lasted time.Duration) time.Duration {
	for _, s := range growing {
		if s >= lasted {
			return min(s, chosen)
		}
	}
	return chosen
}

// Zoom is the next shorter (in > 0) or longer span.
func Zoom(span time.Duration, in int) time.Duration {
	if in > 0 {
		for i := len(spans) - 1; i >= 0; i-- {
			if spans[i] < span {
				return spans[i]
			}
		}
		return min(span, spans[0])
	}
	for _, s := range spans {
		if s > span {
			return s
		}
	}
	return span
}
