// Package nagios is a snapshot as the answer of a monitoring plugin: one of four
// states, a line that says why, performance data for graphs, and further lines.
// It is a view: what is wrong with a host comes from words, as everywhere; the
// numbers that thresholds are set on come from the table of metrics.
package nagios

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Status is a plugin's state; its number is the exit code.
type Status int

// The states.
const (
	OK Status = iota
	Warning
	Critical
	Unknown
)

func (s Status) String() string { return [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[s] }

// rank orders states: something unknown must not hide what is known to be bad.
func (s Status) rank() int { return [...]int{OK: 0, Unknown: 1, Warning: 2, Critical: 3}[s] }

// Threshold is a range for a field of every device.
type Threshold struct {
	Field metric.Column[*model.Device]
	Range Range
	Level Status // Warning or Critical
}

// Check holds the thresholds that a host is checked against.
type Check struct {
	Thresholds []Threshold
	Expect     int      // devices that must be there; 0: any
	Ignore     []string // kinds of notices that do not count
}

// finding is one thing that is not as it should be.
type finding struct {
	status Status
	text   string
}

// Result is the answer.
type Result struct {
	Status   Status
	findings []finding
	snap     *model.Snapshot
	perf     []string
	marked   []string // numbers among them that are not exact: performance data has no marks
}

// Run looks at a snapshot.
func (c *Check) Run(s *model.Snapshot) *Result {
	r := &Result{snap: s}
	if c.Expect > 0 && len(s.Devices) != c.Expect {
		r.add(Critical, fmt.Sprintf("%s, expected %d", devices(len(s.Devices)), c.Expect))
	} else if len(s.Devices) == 0 {
		r.add(Unknown, "no device")
	}
	for _, n := range words.Notices(s) {
		if level, ok := statusOf(n.Level); ok && !slices.Contains(c.Ignore, n.Code) {
			r.add(level, n.String())
		}
	}
	for i := range s.Devices {
		c.device(r, &s.Devices[i])
	}
	slices.SortStableFunc(r.findings, func(a, b finding) int { return cmp.Compare(b.status.rank(), a.status.rank()) })
	return r
}

// statusOf is the status of a notice that counts. Info says what figures leave out.
func statusOf(l words.Level) (s Status, counts bool) {
	switch l {
	case words.Critical:
		return Critical, true
	case words.Warning:
		return Warning, true
	}
	return s, false
}

// Codes are the kinds of notices that can be ignored.
func Codes() []string {
	codes := []string{"alert"}
	for i := range model.ConditionKinds {
		if k := &model.ConditionKinds[i]; k.Level > model.Fine {
			codes = append(codes, string(k.Kind))
		}
	}
	slices.Sort(codes)
	return codes
}

func (r *Result) add(s Status, text string) {
	r.findings = append(r.findings, finding{s, text})
	if s.rank() > r.Status.rank() {
		r.Status = s
	}
}

// unavailable says of a value why it is missing.
func unavailable(s model.Status) string {
	if word := words.Missing(s); word != words.Nothing {
		return word
	}
	return "not available"
}

// device holds one device against the thresholds.
func (c *Check) device(r *Result, d *model.Device) {
	asked := map[string]bool{}
	for i := range c.Thresholds {
		t := &c.Thresholds[i]
		v := t.Field.Get(r.snap, d)
		if !asked[t.Field.Name] {
			asked[t.Field.Name] = true
			c.perf(r, d, t.Field, v)
		}
		name := nameOf(d, t.Field)
		switch {
		case !v.Known():
			r.add(Unknown, name+" is "+unavailable(v.Status))
		case v.Bound == model.AtLeast && !t.decides(v):
			r.add(Unknown, fmt.Sprintf("%s is %s%s, which does not decide (%s)", name, words.Mark(v.Bound), value(t.Field, v), t.Range))
		case t.Range.Alerts(inUnit(t.Field, v)) && !c.worse(t, v):
			r.add(t.Level, fmt.Sprintf("%s is %s%s (%s)", name, words.Mark(v.Bound), value(t.Field, v), t.Range))
		}
	}
	for _, usual := range metric.Tagged(metric.InChecks) {
		if f, ok := metric.Find(metric.Devices(), usual.Name); ok && !asked[f.Name] {
			c.perf(r, d, f, f.Get(r.snap, d))
		}
	}
}

// decides reports whether a lower bound is enough to know on which side of the
// threshold the value is.
func (t *Threshold) decides(v metric.Value) bool {
	_, sure := t.Range.AlertsFrom(inUnit(t.Field, v))
	return sure
}

func nameOf(d *model.Device, f metric.Column[*model.Device]) string {
	return "device " + strconv.Itoa(d.Index) + ": " + f.Title
}

// worse reports whether a critical threshold of the same field alerts as well: one
// line is enough.
func (c *Check) worse(t *Threshold, v metric.Value) bool {
	return t.Level == Warning && slices.ContainsFunc(c.Thresholds, func(o Threshold) bool {
		return o.Level == Critical && o.Field.Name == t.Field.Name && o.Range.Alerts(inUnit(o.Field, v))
	})
}

// inUnit is a value in the field's printed unit, in which thresholds are.
func inUnit(f metric.Column[*model.Device], v metric.Value) float64 {
	if f.Per != 0 {
		return v.Num / f.Per
	}
	return v.Num
}

func value(f metric.Column[*model.Device], v metric.Value) string {
	return strings.TrimSpace(f.Format(v) + " " + f.Field.Unit)
}

// perf adds a number for graphs; what is not known is left out, never 0.
func (c *Check) perf(r *Result, d *model.Device, f metric.Column[*model.Device], v metric.Value) {
	if !v.Known() {
		return
	}
	unit, by := perfUnit(f)
	warn, crit := "", ""
	for _, t := range c.Thresholds {
		switch {
		case t.Field.Name != f.Name:
		case t.Level == Warning:
			warn = t.Range.scaled(by)
		default:
			crit = t.Range.scaled(by)
		}
	}
	number := plain(inUnit(f, v) * by)
	if by == 1 {
		number = f.Format(v)
	}
	text := fmt.Sprintf("'dev%d_%s'=%s%s;%s;%s", d.Index, strings.ReplaceAll(f.Name, ".", "_"), number, unit, warn, crit)
	r.perf = append(r.perf, strings.TrimRight(text, ";"))
	if v.Bound != model.Exact {
		r.marked = append(r.marked, fmt.Sprintf("%s is %s%s", nameOf(d, f), words.Mark(v.Bound), value(f, v)))
	}
}

// perfUnit is the unit of performance data, of which there are few, and how many
// of them make one of the field's.
func perfUnit(f metric.Column[*model.Device]) (unit string, by float64) {
	switch u := f.Field.Unit; u {
	case "MiB":
		return "B", 1 << 20
	case "%", "s":
		return u, 1
	default:
		return "", 1
	}
}

// Append writes the answer: a line with performance data, a line for each thing
// that is not as it should be, where there are several, and a line for each
// number of the performance data that is not exact.
func (r *Result) Append(dst []byte) []byte {
	dst = fmt.Appendf(dst, "TTMON %s - %s", r.Status, r.summary())
	if len(r.perf) > 0 {
		dst = append(dst, " | "+strings.Join(r.perf, " ")...)
	}
	dst = append(dst, '\n')
	if len(r.findings) > 1 {
		for _, f := range r.findings {
			dst = fmt.Appendf(dst, "%s: %s\n", f.status, noPipe(f.text))
		}
	}
	for _, line := range r.marked {
		dst = append(dst, line+"\n"...)
	}
	return dst
}

func (r *Result) summary() string {
	text := devices(len(r.snap.Devices)) + ", all ok" + r.stale() + r.staleUnknown()
	if len(r.findings) > 0 {
		text = r.findings[0].text
	}
	if n := len(r.findings); n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	if r.snap.Simulated {
		text += " (simulated)"
	}
	return noPipe(text)
}

// stale names what dead processes left in tt-metal's statistics. It is no trouble,
// since it counts nowhere, but it is not nothing either.
func (r *Result) stale() (text string) {
	for i := range r.snap.Devices {
		d := &r.snap.Devices[i]
		if n, _, known := d.Memory.Stale.Best(); known && n > 0 {
			text += fmt.Sprintf("; %s of stale memory on device %d", words.Figure(d.Memory.Stale), d.Index)
		}
	}
	return text
}

// staleUnknown names the devices whose stale memory cannot be read: it is
// not known to be none.
func (r *Result) staleUnknown() string {
	var list []int
	for i := range r.snap.Devices {
		if s := r.snap.Devices[i].Memory.Stale.Status(); s == model.Denied || s == model.Unsupported {
			list = append(list, r.snap.Devices[i].Index)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; stale memory of device " + words.Ranges(list) + " is not known"
}

// noPipe keeps text and performance data apart: what follows a bar is data.
func noPipe(s string) string { return strings.ReplaceAll(s, "|", "/") }

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return strconv.Itoa(n) + " devices"
}
