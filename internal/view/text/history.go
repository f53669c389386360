package text

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Line is a series over time, for AppendHistory.
type Line struct {
	Name string
	// A bucket each for equal parts of the time; NaN where nothing was known.
	Min, Max, Avg []float64
	Last          float64 // NaN: it ended
	// How the figures are to be read: those of the whole time, and the last.
	Bound, LastBound model.Bound
}

// History is what ttmon history prints of one metric.
type History struct {
	Title, Unit string
	Decimals    int
	Start, End  time.Time
	Lines       []Line
}

// AppendHistory draws lines over time: a column each for a part of it, as high
// as the average, next to the extremes.
func AppendHistory(dst []byte, h History) []byte {
	title := h.Title
	if h.Unit != "" {
		title += " [" + h.Unit + "]"
	}
	local := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
	dst = fmt.Appendf(dst, "%s  %s to %s\n", title, local(h.Start), local(h.End))
	if len(h.Lines) == 0 {
		return append(dst, "  nothing is known of that time\n"...)
	}
	lo, hi := extent(h.Lines)
	if hi > lo { // all lines have the same scale
		dst = fmt.Appendf(dst, "  bars from %.*f to %.*f\n", h.Decimals, lo, h.Decimals, hi)
	}
	width := 0
	for _, l := range h.Lines {
		width = max(width, words.Width(words.Escape(l.Name)))
	}
	for _, l := range h.Lines {
		dst = fmt.Appendf(dst, "  %s  %s", words.Pad(words.Escape(l.Name), width), spark(l.Avg, lo, hi))
		low, high, mean := extremes(l)
		for _, x := range []struct {
			word  string
			v     float64
			bound model.Bound
		}{{"min", low, l.Bound}, {"avg", mean, l.Bound}, {"max", high, l.Bound}, {"last", l.Last, l.LastBound}} {
			value := words.Nothing
			if !math.IsNaN(x.v) {
				value = words.Mark(x.bound) + fmt.Sprintf("%.*f", h.Decimals, x.v)
			}
			dst = fmt.Appendf(dst, "  %s %s", x.word, value)
		}
		dst = append(dst, '\n')
	}
	return dst
}

func extent(lines []Line) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for i := range l.Avg {
			if !math.IsNaN(l.Avg[i]) {
				lo, hi = min(lo, l.Avg[i]), max(hi, l.Avg[i])
			}
		}
	}
	return lo, hi
}

func extremes(l Line) (low, high, mean float64) {
	low, high = math.NaN(), math.NaN()
	sum, n := 0.0, 0
	for i := range l.Avg {
		if math.IsNaN(l.Avg[i]) {
			continue
		}
		if n == 0 || l.Min[i] < low {
			low = l.Min[i]
		}
		if n == 0 || l.Max[i] > high {
			high = l.Max[i]
		}
		sum += l.Avg[i]
		n++
	}
	if n == 0 {
		return low, high, math.NaN()
	}
	return low, high, sum / float64(n)
}

// spark draws values from lo to hi as a line of bars; a gap is a blank.
func spark(values []float64, lo, hi float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		i := 0
		if hi > lo {
			i = int((v - lo) / (hi - lo) * float64(len(bars)))
		}
		b.WriteRune(bars[min(max(i, 0), len(bars)-1)])
	}
	return b.String()
}
