package runreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/model"
)

// JSON is the report for programs.
func JSON(r *Report) ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// junitCase is one verdict.
type junitCase struct {
	chip    uint64
	name    string
	failure string // why it failed; empty: it did not
	text    string // and the details
}

// JUnit is the verdict on each pool, in the form that CI systems read: one
// case for what was left behind (it fails above leak; nil: never), one for
// each limit.
func JUnit(r *Report, leak *uint64, limits map[model.Pool]uint64) []byte {
	var cases []junitCase
	tooMuch := leak != nil && r.Left().Bytes > *leak
	for _, c := range r.Chips {
		for _, p := range c.Pools {
			left := junitCase{chip: c.ID, name: p.PoolName + " left behind"}
			if tooMuch && p.Left.Blocks > 0 {
				left.failure, left.text = fmt.Sprintf("%d bytes in %d blocks left behind", p.Left.Bytes, p.Left.Blocks), leftText(p)
			}
			cases = append(cases, left)
			if limit, ok := limits[p.Pool]; ok {
				peak := junitCase{chip: c.ID, name: p.PoolName + " peak"}
				if p.Peak > limit {
					peak.failure = fmt.Sprintf("peak of %d bytes, limit %d", p.Peak, limit)
				}
				cases = append(cases, peak)
			}
		}
	}
	return appendJUnit(nil, cases, r.Seconds, r.Judged())
}

// appendJUnit writes verdicts as XML. It is so little of XML that encoding/xml,
// with its tables, would cost every start of ttmon more than it saves here.
func appendJUnit(dst []byte, cases []junitCase, seconds float64, judged bool) []byte {
	failures, skipped := 0, 0
	var body []byte
	for _, c := range cases {
		body = fmt.Appendf(body, `  <testcase classname="memory.chip%d" name="%s">`, c.chip, escapeXML(c.name))
		switch {
		case c.failure != "":
			failures++
			body = fmt.Appendf(body, "\n    <failure message=\"%s\">%s</failure>\n  ", escapeXML(c.failure), escapeXML(c.text))
		case !judged:
			skipped++
			body = append(body, "\n    <skipped message=\"sampled from shared memory: leaks and limits are not known\"></skipped>\n  "...)
		}
		body = append(body, "</testcase>\n"...)
	}
	dst = append(dst, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"...)
	dst = fmt.Appendf(dst, "<testsuite name=\"ttmon run\" tests=\"%d\" failures=\"%d\" skipped=\"%d\" time=\"%.3f\">\n", len(cases), failures, skipped, seconds)
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
