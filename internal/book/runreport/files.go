package runreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// JSON is the report for programs.
func JSON(r *Report) ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// junitCase is one verdict.
type junitCase struct {
	of      string // device0, device0.L; chip and its id where its device is not known
	name    string
	failure string // why it failed; empty: it did not
	text    string // and the details
	skipped string // why it could not be made; empty: it was
}

// Limits are what a run is held against.
type Limits struct {
	Leak   *LeakLimit // nil: all of it
	Pools  map[model.Pool]uint64
	NoRoom bool // no request may fail, also where the program caught it
}

// JUnit is the verdict on each pool, in the form that CI systems read: one
// case for what was left behind, one for each limit, and one for each request
// that failed. Those fail where they may not, or where the program did.
func JUnit(r *Report, limits Limits) []byte {
	var cases []junitCase
	for _, f := range r.Failures {
		c := junitCase{name: f.Pool + " request"}
		if len(f.Chips) > 0 {
			c.of = caseOf(&r.Run, strconv.FormatUint(f.Chips[0].ID, 10))
		}
		if limits.NoRoom || r.Run.End.ExitCode() != 0 {
			c.failure, c.text = failedText(f)
		}
		cases = append(cases, c)
	}
	tooMuch := limits.Leak != nil && r.Leaks(*limits.Leak)
	for d, c := range r.Run.Chips() {
		for _, pool := range model.Pools() {
			if p, used := c.Pools[pool.String()]; used {
				list := poolCases(deviceName(d, c), pool, p, limits, tooMuch)
				if limits.Leak != nil && !r.LeaksKnown() {
					list[0].skipped = "allocations and frees are missing: whether more was left behind is not known"
				}
				cases = append(cases, list...)
			}
		}
	}
	if limits.Pools[model.L1] > 0 && r.PerCoreL1() {
		cases = append(cases, junitCase{of: "run", name: "l1 peak", skipped: "the program's allocator gave out L1 core by core (HYBRID): its peak is not known"})
	}
	if !r.Judged() {
		if len(cases) == 0 {
			cases = []junitCase{{of: "run", name: "memory"}}
		}
		for i := range cases { // a limit that a sample was above was passed, whatever was not seen
			cases[i].skipped = "libttmon did not see the program's allocations: leaks and limits are not known"
		}
	}
	return appendJUnit(nil, workProperties(&r.Run), cases, r.Run.Took().Seconds())
}

// caseOf names the chip of an id as a case does.
func caseOf(r *runs.Run, id string) string {
	for d, c := range r.Chips() {
		if c.ID == id {
			return deviceName(d, c)
		}
	}
	return "chip" + id
}

// deviceName names a chip by its device, which people know: device0, device0.L; by its id
// where that is behind no device of the host.
func deviceName(d *runs.Device, c *runs.Chip) string {
	switch {
	case d.Index < 0:
		return "chip" + c.ID
	case c.Name != "":
		return fmt.Sprintf("device%d.%s", d.Index, c.Name)
	}
	return fmt.Sprintf("device%d", d.Index)
}

// poolCases are the verdicts on one pool of a chip, that on leaks first. tooMuch: more was left behind on
// all chips than may be.
func poolCases(of string, pool model.Pool, p runs.Pool, limits Limits, tooMuch bool) []junitCase {
	left := junitCase{of: of, name: pool.String() + " left behind"}
	if b := p.Blocks; tooMuch && b != nil && b.Left.Blocks > 0 && (!limits.Leak.Kept || b.Grown.Blocks > 0) {
		left.failure, left.text = leftMessage(b), leftText(b)
	}
	limit, limited := limits.Pools[pool]
	if !limited {
		return []junitCase{left}
	}
	peak := junitCase{of: of, name: pool.String() + " peak"}
	switch p.Within(limit) {
	case runs.Exceeded:
		peak.failure = fmt.Sprintf("peak of %d bytes, limit %d", p.Peak, limit)
	case runs.Uncertain:
		peak.skipped = fmt.Sprintf("peak of %d bytes or more, limit %d: whether it was passed is not known", p.Peak, limit)
	case runs.Within:
	}
	return []junitCase{left, peak}
}

// failedText says which request failed, and from where it came.
func failedText(f *failure.Record) (message, text string) {
	message = fmt.Sprintf("no room for %d bytes of each bank (%s)", f.Need(), f.Verdict.Cause)
	switch f.Kind {
	case failure.Clash:
		message = fmt.Sprintf("circular buffers clash with a buffer of L1 by %d bytes", f.Clash.Overlap)
		if f.Verdict.Cause == failure.TooLarge {
			message = fmt.Sprintf("circular buffers are larger than L1 by %d bytes", f.Verdict.Missing)
		}
	case failure.Trace:
		message = fmt.Sprintf("traces need %d bytes, trace_region_size is %d", f.Region.Needed, f.Region.Size)
	case failure.NoRoom:
	}
	var b bytes.Buffer
	for _, x := range f.Stack {
		fmt.Fprintf(&b, "%s:%d %s\n", x.File, x.Line, x.Function)
	}
	return message, b.String()
}

// appendJUnit writes verdicts as XML. It is so little of XML that encoding/xml,
// with its tables, would cost every start of ttmon more than it saves here.
func appendJUnit(dst []byte, properties []property, cases []junitCase, seconds float64) []byte {
	failures, skipped := 0, 0
	var body []byte
	for _, c := range cases {
		body = fmt.Appendf(body, `  <testcase classname="memory.%s" name="%s">`, escapeXML(c.of), escapeXML(c.name))
		switch {
		case c.failure != "":
			failures++
			body = fmt.Appendf(body, "\n    <failure message=\"%s\">%s</failure>\n  ", escapeXML(c.failure), escapeXML(c.text))
		case c.skipped != "":
			skipped++
			body = fmt.Appendf(body, "\n    <skipped message=\"%s\"></skipped>\n  ", escapeXML(c.skipped))
		}
		body = append(body, "</testcase>\n"...)
	}
	dst = append(dst, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"...)
	dst = fmt.Appendf(dst, "<testsuite name=\"ttmon run\" tests=\"%d\" failures=\"%d\" skipped=\"%d\" time=\"%.3f\">\n", len(cases), failures, skipped, seconds)
	if len(properties) > 0 {
		dst = append(dst, "  <properties>\n"...)
		for _, p := range properties {
			dst = fmt.Appendf(dst, "    <property name=\"%s\" value=\"%s\"></property>\n", escapeXML(p.name), escapeXML(p.value))
		}
		dst = append(dst, "  </properties>\n"...)
	}
	return append(append(dst, body...), "</testsuite>\n"...)
}

// escapeXML makes text fit for an attribute or an element: markup is escaped, and
// what XML has no way to write becomes the replacement character.
func escapeXML(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\n' || r == '\t' || r == '\r':
			fmt.Fprintf(&b, "&#%d;", r)
		case r < 0x20 || r == 0xfffe || r == 0xffff:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r) // a byte that is no UTF-8 comes as the replacement character
		}
	}
	return b.String()
}

// leftMessage says how much was left, and how much of it grew step by step.
func leftMessage(p *runs.Blocks) string {
	text := fmt.Sprintf("%d bytes in %d blocks left behind", p.Left.Bytes, p.Left.Blocks)
	if p.Grown.Blocks > 0 {
		text += fmt.Sprintf(", of which %d bytes in %d blocks grew step by step", p.Grown.Bytes, p.Grown.Blocks)
	}
	return text
}

func leftText(p *runs.Blocks) string {
	var b bytes.Buffer
	for _, x := range runs.ByLine(p.LeftBy) {
		if f, ok := x.Where(); ok {
			fmt.Fprintf(&b, "%s:%d %s: ", f.File, f.Line, f.Function)
		}
		if x.Tag != "" {
			fmt.Fprintf(&b, "[%s] ", x.Tag)
		}
		fmt.Fprintf(&b, "%d bytes in %d blocks", x.Bytes, x.Blocks)
		if x.Grew {
			b.WriteString(", grew step by step")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
