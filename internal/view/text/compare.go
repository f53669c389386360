package text

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/runs/compare"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendComparison says how two runs differ: a verdict, then the figures that
// differ, and with all also those that do not.
func AppendComparison(dst []byte, c *compare.Comparison, all bool, o Options) []byte {
	dst = fmt.Appendf(dst, "%s\n\n", runwords.Verdict(c))
	for _, x := range []struct {
		letter string
		side   *compare.Side
	}{{"A", c.A}, {"B", c.B}} {
		what := words.Escape(x.side.Name)
		if n := len(x.side.Runs); n > 1 {
			what = fmt.Sprintf("%s: median of %s", what, strings.Join(x.side.Runs, " "))
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
		return append(dst, "no figure differs\n"...)
	}
	return appendAligned(append(dst, '\n'), rows)
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
