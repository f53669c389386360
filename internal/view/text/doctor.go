package text

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendDoctor appends the report of ttmon doctor: a line per check, and below
// those that are not well what to do.
func AppendDoctor(dst []byte, r *doctor.Report, o Options) []byte {
	p := newPrinter(dst, o)
	p.Write(" "+words.Escape(r.Host), cells.Strong)
	p.Write("   "+verdict(r), levelStyle(r.Status))
	p.Write("   ttmon "+o.Version, cells.Faint)
	p.Newline()
	p.Rule("")
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
		p.Newline()
		p.Sentence(words.Simulated, cells.Warn)
	}
	return p.Buf
}

// doctorText is the column where what the checks say begins.
const doctorText = 20

func (p *printer) finding(f *doctor.Finding, area string) {
	word := map[doctor.Level]string{
		doctor.OK: "ok", doctor.Hint: "hint", doctor.Unknown: "?", doctor.Warning: "warn", doctor.Critical: "BAD",
	}[f.Level]
	width := p.Width
	if width < doctorText+20 {
		width = 0
	}
	label := lines.Line{{Text: " "}, {Text: words.Pad(word, 6), Style: levelStyle(f.Level)}, {Text: words.Pad(area, doctorText-7)}}
	p.Lines(lines.Hang(label, f.Text, cells.Text, width, 0)...)
	if f.Do != "" {
		p.Lines(lines.Hang(lines.Plain(words.Pad("", doctorText)), "→ "+f.Do, cells.Strong, width, 2)...)
	}
}

func levelStyle(l doctor.Level) cells.Style {
	switch l {
	case doctor.OK:
		return cells.Good
	case doctor.Warning, doctor.Unknown:
		return cells.Warn
	case doctor.Critical:
		return cells.Bad
	default:
		return cells.Text
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
