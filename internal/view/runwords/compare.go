package runwords

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Verdict says in one sentence how B differs from A.
func Verdict(c *compare.Comparison) string {
	if len(c.Verdict) == 0 {
		return "no difference that matters"
	}
	list := make([]string, len(c.Verdict))
	for i := range c.Verdict {
		list[i] = Remark(c, &c.Verdict[i])
	}
	return strings.Join(list, "; ")
}

// Complete puts the words into a comparison.
func Complete(c *compare.Comparison) {
	c.Text = Verdict(c)
	for i := range c.Verdict {
		c.Verdict[i].Text = Remark(c, &c.Verdict[i])
	}
	for i := range c.Figures {
		f := &c.Figures[i]
		f.Title = Title(f.Name)
		f.TextA, f.TextB, f.ChangeText = Value(f.Unit, f.A), Value(f.Unit, f.B), Change(f)
	}
	for i := range c.Conditions {
		c.Conditions[i].Text = checked(&c.Conditions[i])
	}
}

// checked is a figure with its limit: dram.peak +2.1 GiB (+13 %), limit +5%.
func checked(x *compare.Checked) string {
	f := x.Figure
	is := Value(f.Unit, f.B)
	change := Change(f)
	switch {
	case x.Result == compare.Uncertain && x.Relative:
		is = marked(f.Unit, f.A) + " → " + marked(f.Unit, f.B)
	case x.Result == compare.Uncertain:
		is = marked(f.Unit, f.B)
	case x.Relative && change != "":
		is = change
	}
	limit := strings.TrimLeft(x.Source[strings.IndexAny(x.Source, "<>"):], "<>=")
	return f.Name + " " + is + ", limit " + strings.TrimSpace(limit)
}

// marked is a value with the mark of its bound, also where that is a doubt of nothing.
func marked(u compare.Unit, v *compare.Value) string {
	return words.Mark(model.ParseBound(v.Bound)) + Amount(u, v.V)
}

// Title is the name of a figure in words: DRAM, peak.
func Title(name string) string {
	titles := map[string]string{
		"duration": "Duration", "energy": "Energy", "busy": "Busy", "throttled": "Throttled", "left": "Left behind", "failures": "Failed allocations", "shared": "Shared its devices", "resets": "Resets",
		"power": "Power", "temperature": "Temperature", "aiclk": "AICLK", "activity": "Activity", "pcie": "PCIe", "peak": "peak", "mean": "mean", "max": "highest", "to": "to the device", "from": "from the device",
	}
	for _, p := range model.Pools() {
		titles[p.String()] = PoolName(p)
	}
	what, part, ok := strings.Cut(name, ".")
	if !ok {
		return cmp.Or(titles[what], what)
	}
	return cmp.Or(titles[what], what) + ", " + cmp.Or(titles[part], part)
}

// Remark says one thing that differs.
func Remark(c *compare.Comparison, r *compare.Remark) string {
	change := r.B - r.A
	more := "more"
	if change < 0 {
		more = "less"
	}
	about := ""
	if r.Unsure {
		about = words.Mark(model.Unsure)
	}
	on := ""
	if r.Device != nil {
		on = fmt.Sprintf(" on device %d", *r.Device)
	}
	size := words.Bytes(uint64(math.Abs(change)))
	switch r.Kind {
	case compare.Ended:
		return fmt.Sprintf("%s instead of %s", sideEnding(&c.B.End), sideEnding(&c.A.End))
	case compare.Failures:
		if r.B == 0 {
			return "no failed allocations"
		}
		return words.Mark(model.AtLeast) + words.Count(int(r.B), "failed allocation")
	case compare.Left:
		if r.B == 0 {
			return "left nothing behind"
		}
		return "left " + about + words.Bytes(uint64(r.B)) + " behind"
	case compare.PeakDRAM:
		return about + size + " " + more + " DRAM at the peak" + on + blamed(r, change)
	case compare.PeakL1:
		return about + size + " " + more + " L1 at the peak" + on + blamed(r, change)
	case compare.Duration:
		if times, ok := multiple(r.A, r.B); ok {
			return times + " as long"
		}
		return Share(r.A, r.B) + map[bool]string{true: " longer", false: " shorter"}[change > 0]
	case compare.Throttled:
		switch {
		case r.B == 0:
			return "not throttled"
		case change < 0:
			return "throttled " + seconds(-change) + " less" + on
		}
		return "throttled " + seconds(r.B) + on
	case compare.Energy:
		if times, ok := multiple(r.A, r.B); ok {
			return about + times + " the energy" + on
		}
		return about + Share(r.A, r.B) + " " + more + " energy" + on
	case compare.Shared:
		if r.B == 0 {
			return "had its devices for itself"
		}
		return "shared its devices for " + seconds(r.B)
	case compare.Busy:
		return fmt.Sprintf("busy %s%s → %s%s", about, words.Percent(r.A), words.Percent(r.B), on)
	case compare.Slower:
		return slower(r.Operation)
	case compare.Devices:
		return fmt.Sprintf("%.0f devices instead of %.0f", r.B, r.A)
	}
	return string(r.Kind)
}

// slower says which operation took longer, and whether it was called more often.
func slower(o *compare.Operation) string {
	text := fmt.Sprintf("%s took %s instead of %s", words.Escape(o.Name), Elapsed(o.SecondsB), Elapsed(o.SecondsA))
	if o.CallsA != o.CallsB {
		text += fmt.Sprintf(" (%d calls instead of %d)", o.CallsB, o.CallsA)
	}
	return text
}

// blamed names the line that a change of a peak is most due to, and how much of the
// change that is, where it is not all.
func blamed(r *compare.Remark, change float64) string {
	switch {
	case r.Line == nil:
		return ""
	case math.Abs(r.LineChange-change) <= 0.01*math.Abs(change):
		return ", from " + Line(r.Line)
	}
	return fmt.Sprintf(", from %s (%s)", Line(r.Line), Signed(r.LineChange))
}

// Line is a line of code: model.py:88 kv_cache. What a program allocates before its
// first line, or in a thread without Python, has none.
func Line(l *runs.Line) string {
	name := cmp.Or(l.Tag, l.Function)
	switch {
	case l.File != "":
		name = strings.TrimSpace(fmt.Sprintf("%s:%d %s", filepath.Base(l.File), l.Line, name))
	case name != "":
		name = "blocks tagged " + strconv.Quote(name) + ", no line recorded"
	default:
		name = "blocks, no line recorded"
	}
	return words.Escape(name)
}

// NoLines says why lines of code are not compared.
const NoLines = "only runs under ttmon run --stacks have them, for their user and root, and recordings with allocations"

// Signed is an amount of bytes with its sign.
func Signed(v float64) string {
	switch {
	case v > 0:
		return "+" + words.Bytes(uint64(v))
	case v < 0:
		return "−" + words.Bytes(uint64(-v))
	}
	return "="
}

func sideEnding(e *runs.Ending) string {
	if e.NoRoom {
		return "out of device memory, " + ending(e)
	}
	return ending(e)
}

// multiple is how many times A B is, where percent would be hard to read: 3.1×.
func multiple(a, b float64) (text string, ok bool) {
	if a <= 0 || b <= 3*a {
		return "", false
	}
	return words.Fixed(b/a, 1) + "×", true
}

// Share says by how much B differs from A, without its direction: 8 %.
func Share(a, b float64) string {
	if a == 0 {
		return "infinitely"
	}
	ratio := math.Abs(b-a) / math.Abs(a)
	if ratio >= 0.995 && ratio < 1 { // 100 % would be all of it
		return "99 %"
	}
	if ratio < 0.0995 {
		return words.Fixed(100*ratio, 1) + " %"
	}
	return words.Percent(ratio)
}

func seconds(s float64) string { return words.Duration(time.Duration(s * float64(time.Second))) }

// Elapsed says a time that may be short: 0.42s, 41.3s, 3m07s.
func Elapsed(s float64) string {
	switch {
	case s < 9.995:
		return words.Fixed(s, 2) + "s"
	case s < 59.95:
		return words.Fixed(s, 1) + "s"
	}
	return seconds(s)
}

// Value says a figure of a comparison, with its mark.
func Value(u compare.Unit, v *compare.Value) string {
	if v == nil {
		return words.Missing(model.Absent)
	}
	if v.V == 0 && v.Bound == model.AtLeast.String() {
		return Amount(u, 0)
	}
	return marked(u, v)
}

// Amount says an amount of a unit.
func Amount(u compare.Unit, v float64) string {
	switch u {
	case compare.Bytes:
		return words.Bytes(uint64(max(v, 0)))
	case compare.Seconds:
		if v < 60 && v != math.Trunc(v) {
			return Elapsed(v)
		}
		return seconds(v)
	case compare.Joules:
		return Joules(v)
	case compare.Watts:
		return metric.Watts.Format(v)
	case compare.Celsius:
		return metric.Celsius.Format(v)
	case compare.MHz:
		return metric.Megahertz.Format(v)
	case compare.Ratio:
		return words.Percent(v)
	}
	return words.Whole(v)
}

// noise is the share of a figure that is an error of adding up, and no difference.
const noise = 1e-9

// leastShown is the smallest change of a unit that Change does not round to 0.
func leastShown(u compare.Unit) float64 {
	switch u {
	case compare.Seconds:
		return 0.005
	case compare.Joules:
		return 0.5e-3 * 3600 // half a mWh
	case compare.Watts:
		return 0.05
	case compare.Celsius, compare.MHz, compare.Count:
		return 0.5
	case compare.Ratio:
		return 0.0005
	}
	return 1
}

// Change says by how much B differs from A: +2.1 GiB (+13 %); empty where they are
// the same, differ by less than is shown, or one is not known.
func Change(f *compare.Figure) string {
	d, ok := f.Change()
	if !ok || math.Abs(d) < leastShown(f.Unit) || math.Abs(d) <= noise*math.Max(math.Abs(f.A.V), math.Abs(f.B.V)) {
		return ""
	}
	sign := "+"
	if d < 0 {
		sign = "−"
	}
	amount := Amount(f.Unit, math.Abs(d))
	switch f.Unit {
	case compare.Celsius: // degrees have no share: 0 °C is not nothing
		return sign + words.Whole(math.Abs(d)) + " K"
	case compare.Ratio: // percent of percent would be read as either
		return sign + words.Fixed(100*math.Abs(d), 1) + " points"
	case compare.Watts:
		if math.Abs(d) < 9.95 {
			amount = words.Fixed(math.Abs(d), 1) + " W"
		}
	}
	if f.A.V == 0 || math.Abs(d) < 0.0005*math.Abs(f.A.V) { // no share, or 0.0 %
		return sign + amount
	}
	if times, ok := multiple(f.A.V, f.B.V); ok {
		return fmt.Sprintf("%s%s (%s)", sign, amount, times)
	}
	return fmt.Sprintf("%s%s (%s%s)", sign, amount, sign, Share(f.A.V, f.B.V))
}
