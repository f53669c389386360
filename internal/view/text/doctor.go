package text

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendDoctor appends the report of ttmon doctor: a line per check, and below
// those that are not well what to do.
func AppendDoctor(dst []byte, r *doctor.Report, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	p.write(" "+words.Escape(r.Host), strong)
	p.write("   "+verdict(r), levelStyle(r.Status))
	p.write("   ttmon "+o.Version, faint)
	p.newline()
	p.rule("")
	var last doctor.Area
	for i := range r.Findings {
		f := &r.Findings[i]
		area := string(f.Area)
		if f.Area == last {
			area = ""
		}
		last = f.Area
		p.finding(f, area)
	}
	if r.Simulated {
		p.newline()
		p.sentence(words.Simulated, warn)
	}
	return p.buf
}

// Where the columns of the report begin.
const (
	doctorArea = 7
	doctorText = 20
)

func (p *printer) finding(f *doctor.Finding, area string) {
	word := map[doctor.Level]string{
		doctor.OK: "ok", doctor.Hint: "hint", doctor.Unknown: "?", doctor.Warning: "warn", doctor.Critical: "BAD",
	}[f.Level]
	p.write(fmt.Sprintf(" %-*s", doctorArea-1, word), levelStyle(f.Level))
	p.write(fmt.Sprintf("%-*s", doctorText-doctorArea, area), plain)
	p.hanging(f.Text, plain, 0)
	if f.Do != "" {
		p.blanks(doctorText)
		p.hanging("→ "+f.Do, strong, 2)
	}
}

// hanging prints prose from column doctorText on, further lines indented a
// little more.
func (p *printer) hanging(s string, st style, indent int) {
	lines := []string{s}
	if p.Width > doctorText+20 {
		lines = words.Wrap(s, p.Width-doctorText-indent)
	}
	for i, l := range lines {
		if i > 0 {
			p.blanks(doctorText + indent)
		}
		p.line(l, st)
	}
}

func levelStyle(l doctor.Level) style {
	switch l {
	case doctor.OK:
		return good
	case doctor.Warning, doctor.Unknown:
		return warn
	case doctor.Critical:
		return bad
	default:
		return plain
	}
}

// verdict sums the report up: "1 critical, 2 warnings, 3 hints".
func verdict(r *doctor.Report) string {
	var parts []string
	for _, l := range []struct {
		level     doctor.Level
		one, many string
	}{
		{doctor.Critical, "critical", "critical"},
		{doctor.Warning, "warning", "warnings"},
		{doctor.Unknown, "that cannot be checked", "that cannot be checked"},
		{doctor.Hint, "hint", "hints"},
	} {
		switch n := r.Count(l.level); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+l.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, l.many))
		}
	}
	if len(parts) == 0 {
		return "all well"
	}
	return strings.Join(parts, ", ")
}
