package text

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/runwords"
)

// AppendComparison says how two runs differ: a verdict, then the figures that
// differ, and with all also those that do not, then at most top lines of code.
func AppendComparison(dst []byte, c *compare.Comparison, all bool, top int, o Options) []byte {
	dst = fmt.Appendf(dst, "%s\n\n", runwords.Verdict(c))
	for _, x := range []struct {
		letter string
		side   *compare.Side
	}{{"A", c.A}, {"B", c.B}} {
		what := words.Escape(x.side.Name)
		switch list := x.side.Runs; {
		case len(list) > 1:
			what = fmt.Sprintf("%s: median of %s", what, strings.Join(list, ", "))
		case len(list) == 1 && !x.side.Recorded && list[0] != x.side.Name:
			what = fmt.Sprintf("%s: %s", what, list[0])
		}
		line := fmt.Sprintf("%s  %s  %s  %s", x.letter, what, clock(x.side.Start, o), words.Escape(x.side.Command))
		dst = append(append(dst, strings.TrimRight(line, " ")...), '\n')
	}
	rows := [][]string{{"Figure", "Device", "A", "B", "Change"}}
	for i := range c.Figures {
		f := &c.Figures[i]
		change := runwords.Change(f)
		if !all && (change == "" && !onlyOne(f) || f.Device != nil && single(c) && c.Find(f.Name, nil) != nil) {
			continue
		}
		device := ""
		if f.Device != nil {
			device = strings.TrimSpace(deviceName(*f.Device) + " " + words.Escape(f.Board))
		}
		rows = append(rows, []string{f.Name, device, runwords.Value(f.Unit, f.A), runwords.Value(f.Unit, f.B), change})
	}
	if len(rows) == 1 {
		dst = append(dst, "no figure differs\n"...)
	} else {
		dst = appendAligned(append(dst, '\n'), rows)
	}
	return appendOperations(appendLines(dst, c, top), c, top)
}

// appendOperations lists the operations that took another time.
func appendOperations(dst []byte, c *compare.Comparison, top int) []byte {
	if len(c.Operations) == 0 {
		return dst
	}
	rows := [][]string{{"Operation", "Time A", "Time B", "Change", "Calls"}}
	for i := range c.Operations {
		o := &c.Operations[i]
		if i == top && top > 0 {
			break
		}
		a, b := runwords.Elapsed(o.SecondsA), runwords.Elapsed(o.SecondsB)
		sign := "+"
		if o.Change() < 0 {
			sign = "−"
		}
		rows = append(rows, []string{words.Escape(o.Name), a, b, sign + runwords.Elapsed(math.Abs(o.Change())), fmt.Sprintf("%d → %d", o.CallsA, o.CallsB)})
	}
	dst = appendAligned(append(dst, '\n'), rows)
	if more := len(c.Operations) - len(rows) + 1; more > 0 {
		dst = fmt.Appendf(dst, "%d more (--top)\n", more)
	}
	return dst
}

// appendLines lists the lines of code that differ: by the most that they held.
func appendLines(dst []byte, c *compare.Comparison, top int) []byte {
	switch a, b := c.A.Lines, c.B.Lines; {
	case a == nil && b == nil && !peakDiffers(c):
		return dst
	case a == nil && b == nil:
		return fmt.Appendf(dst, "\nlines of code are not known of these runs: %s\n", runwords.NoLines)
	case a == nil || b == nil:
		return fmt.Appendf(dst, "\nlines of code cannot be compared, %s has none: %s\n", map[bool]string{true: "A", false: "B"}[a == nil], runwords.NoLines)
	case a.Lost > 0 || b.Lost > 0:
		dst = fmt.Appendf(dst, "\nallocations that were not recorded: A %d, B %d\n", a.Lost, b.Lost)
	}
	if len(c.Lines) == 0 {
		return append(dst, "\nevery line of code held and allocated the same\n"...)
	}
	rows := [][]string{{"Line", "Pool", "Peak A", "Peak B", "Change", "Held A", "Held B", "Allocations"}}
	if c.A.Lines.PeakOnly {
		rows[0][2], rows[0][3] = "At peak A", "At peak B"
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		if i == top && top > 0 {
			break
		}
		rows = append(rows, []string{
			runwords.Line(&l.Line), strings.ToUpper(l.Pool), words.Bytes(l.PeakA), words.Bytes(l.PeakB), runwords.Signed(float64(l.PeakB) - float64(l.PeakA)),
			words.Bytes(l.HeldA), words.Bytes(l.HeldB), fmt.Sprintf("%d → %d", l.AllocsA, l.AllocsB),
		})
	}
	dst = appendAligned(append(dst, '\n'), rows)
	if more := len(c.Lines) - len(rows) + 1; more > 0 {
		dst = fmt.Appendf(dst, "%d more (--top)\n", more)
	}
	return dst
}

// peakDiffers reports whether the verdict is about a peak, which a line could explain.
func peakDiffers(c *compare.Comparison) bool {
	return slices.ContainsFunc(c.Verdict, func(r compare.Remark) bool { return r.Kind == compare.PeakDRAM || r.Kind == compare.PeakL1 })
}

// onlyOne reports whether one side alone has a figure, and it is not 0.
func onlyOne(f *compare.Figure) bool {
	return f.A == nil && f.B != nil && f.B.V != 0 || f.B == nil && f.A != nil && f.A.V != 0
}

// single reports whether both sides used one and the same device: then its memory
// and energy are those of the run.
func single(c *compare.Comparison) bool {
	seen := map[int]bool{}
	for i := range c.Figures {
		if d := c.Figures[i].Device; d != nil {
			seen[*d] = true
		}
	}
	return len(seen) < 2
}
