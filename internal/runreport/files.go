package runreport

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"

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
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitFailure `xml:"skipped,omitempty"`
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
		verdict := junitCase{Class: fmt.Sprintf("memory.chip%d", c.ID), Name: name, Failure: failure}
		switch {
		case failure != nil:
			s.Failures++
		case !r.Judged():
			verdict.Skipped = &junitFailure{Message: "sampled from shared memory: it cannot be told"}
			s.Skipped++
		}
		s.Cases = append(s.Cases, verdict)
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
