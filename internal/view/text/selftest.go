package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	selftest "github.com/ttmon/ttmon/internal/selftest/report"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendSelftest appends the table of a self-test. Rows of several devices that
// agree are one line, unless all are wanted.
func AppendSelftest(dst []byte, r *selftest.Report, all bool, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	lines := selftestLines(r, all)
	wide := [4]int{len("what"), len("ttmon"), len("witness"), len("by")}
	for _, l := range lines {
		for i, s := range []string{l.What, l.Ours, l.Witness, l.By} {
			wide[i] = max(wide[i], words.Width(s))
		}
	}
	limits := [4]int{46, 24, 24, 34}
	if o.Width > 0 && o.Width < 146 {
		limits = [4]int{36, 17, 17, o.Width - 36 - 17 - 17 - len("measured") - 9}
	}
	if limits[3] < 12 { // who the witness is, --json says
		limits[3] = 0
		limits[0] = max(20, min(limits[0], o.Width-17-17-len("measured")-8))
	}
	for i, limit := range limits {
		wide[i] = min(wide[i], limit)
	}
	p.selftestLine(wide, [4]string{"what", "ttmon", "witness", "by"}, faint)
	p.write("verdict", faint)
	p.newline()
	var last selftest.Part
	for _, l := range lines {
		if l.Part != last && last != "" {
			p.newline()
		}
		last = l.Part
		p.selftestLine(wide, [4]string{l.What, l.Ours, l.Witness, l.By}, plain)
		p.write(string(l.Verdict), verdictStyle(l.Verdict))
		p.newline()
		if l.Note != "" {
			for _, text := range words.Wrap(l.Note, max(20, p.layoutWidth()-6)) {
				p.write("    "+text, faint)
				p.newline()
			}
		}
	}
	p.newline()
	p.selftestSum(r)
	return p.buf
}

func (p *printer) selftestLine(wide [4]int, cells [4]string, st style) {
	p.blanks(1)
	for i, s := range cells {
		if wide[i] == 0 {
			continue
		}
		p.write(pad(words.Truncate(words.Escape(s), wide[i]), wide[i], false)+"  ", st)
	}
}

func verdictStyle(v selftest.Verdict) style {
	switch v {
	case selftest.Right:
		return good
	case selftest.Wrong:
		return bad
	case selftest.Bounded, selftest.Failed:
		return warn
	default:
		return faint
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
	st := good
	if r.Count(selftest.Wrong) > 0 {
		st = bad
	}
	var parts []string
	for _, v := range []selftest.Verdict{selftest.Right, selftest.Bounded, selftest.Unknown} {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count(v), v))
	}
	if n := r.Count(selftest.Failed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", n, selftest.Failed))
	}
	p.write(" "+strings.Join(parts, ", ")+", ", plain)
	p.write(fmt.Sprintf("%d wrong", r.Count(selftest.Wrong)), st)
	p.write("     "+words.Duration(time.Duration(r.Seconds*float64(time.Second))), faint)
	p.newline()
	p.sentence(stageText(r), faint)
	if r.Simulated {
		p.sentence(words.Simulated, warn)
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
