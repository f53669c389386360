package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	selftest "github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendSelftest appends the table of a self-test. Rows of several devices that
// agree are one line, unless all are wanted.
func AppendSelftest(dst []byte, r *selftest.Report, all bool, o Options) []byte {
	p := newPrinter(dst, o)
	rows := selftestLines(r, all)
	t := selftestTable(rows, &o)
	at := t.Layout(p.LayoutWidth())
	p.Lines(t.Head(at, cells.Faint))
	for i := range rows {
		if i > 0 && rows[i].Part != rows[i-1].Part {
			p.Newline()
		}
		p.Lines(t.Line(at, &t.Rows[i], true))
		if note := rows[i].Note; note != "" {
			p.Lines(lines.Hang(lines.Plain("    "), note, cells.Faint, p.LayoutWidth()-2, 0)...)
		}
	}
	p.Newline()
	p.selftestSum(r)
	return p.Buf
}

// selftestTable has a row for each comparison. Where it is narrow, who the witness is
// gives way: --json says it.
func selftestTable(rows []selftest.Row, o *Options) *lines.Table {
	what, value := 46, 24
	if o.Width > 0 && o.Width < 146 {
		what, value = 36, 17
	}
	t := &lines.Table{Indent: 1, Columns: []lines.Column{{Head: "what", Least: 20, Most: what}, {Head: "ttmon", Most: value}, {Head: "witness", Most: value}, {Head: "by", Most: 34, Rank: 1}, {Head: "verdict"}}}
	for i := range rows {
		r := &rows[i]
		t.Add(words.Escape(r.What), words.Escape(r.Ours), words.Escape(r.Witness), words.Escape(r.By))
		last := &t.Rows[i]
		last.Cells = append(last.Cells, lines.C(string(r.Verdict), verdictStyle(r.Verdict)))
	}
	return t
}

func verdictStyle(v selftest.Verdict) cells.Style {
	switch v {
	case selftest.Right:
		return cells.Good
	case selftest.Wrong:
		return cells.Bad
	case selftest.Bounded, selftest.Failed:
		return cells.Warn
	default:
		return cells.Faint
	}
}

// selftestLines are the rows to print. What agrees for several devices, or in
// several rows of a group, is printed once; what is wrong is printed for each.
func selftestLines(r *selftest.Report, all bool) (lines []selftest.Row) {
	type kind struct {
		part           selftest.Part
		what, by, note string
		verdict        selftest.Verdict
	}
	at, count := map[kind]int{}, map[kind]int{}
	for _, row := range r.Rows {
		one := row
		if row.Device != nil {
			one.What = fmt.Sprintf("device %d %s", *row.Device, row.What)
		}
		what := row.What
		if row.Group != "" {
			what = row.Group
		}
		k := kind{row.Part, what, row.By, row.Note, row.Verdict}
		n, seen := at[k]
		if !seen || all || row.Verdict == selftest.Wrong || row.Device == nil && row.Group == "" {
			at[k], count[k] = len(lines), 1
			lines = append(lines, one)
			continue
		}
		count[k]++
		lines[n].What = fmt.Sprintf("%s of %d devices", what, count[k])
		if row.Group != "" {
			lines[n].What = fmt.Sprintf("%d× %s", count[k], what)
		}
		lines[n].Ours, lines[n].Witness = several(lines[n].Ours, row.Ours), several(lines[n].Witness, row.Witness)
	}
	return lines
}

// several joins values of devices: one that they share, or the first and the
// last.
func several(sofar, next string) string {
	first, _, _ := strings.Cut(sofar, " … ")
	if first == next && !strings.Contains(sofar, " … ") {
		return sofar
	}
	return first + " … " + next
}

func (p *printer) selftestSum(r *selftest.Report) {
	st := cells.Good
	if r.Count(selftest.Wrong) > 0 {
		st = cells.Bad
	}
	var parts []string
	for _, v := range []selftest.Verdict{selftest.Right, selftest.Bounded, selftest.Unknown} {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count(v), v))
	}
	if n := r.Count(selftest.Failed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", n, selftest.Failed))
	}
	p.Write(" "+strings.Join(parts, ", ")+", ", cells.Text)
	p.Write(fmt.Sprintf("%d wrong", r.Count(selftest.Wrong)), st)
	p.Write("     "+words.Duration(time.Duration(r.Seconds*float64(time.Second))), cells.Faint)
	p.Newline()
	p.Sentence(stageText(r), cells.Faint)
	if r.Simulated {
		p.Sentence(words.Simulated, cells.Warn)
	}
}

// stageText says what the figures were seen on.
func stageText(r *selftest.Report) string {
	var boards []string
	for _, b := range r.Boards {
		boards = append(boards, fmt.Sprintf("%d×%s", b.Count, b.Name))
	}
	slices.Sort(boards)
	text := strings.TrimSpace(strings.ReplaceAll(string(r.Stage), "_", " ") + " " + strings.Join(boards, ", "))
	if r.ProgramOn != "" {
		text += "; ttnn program: " + words.Escape(r.ProgramOn)
	}
	return text
}
