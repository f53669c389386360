package text

import (
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// CSV is how a query is printed, in nvidia-smi's conventions: fields are
// separated by a comma and a blank, units stand in brackets in the header and
// after each value, what is missing is a word in brackets.
type CSV struct {
	NoHeader bool
	NoUnits  bool // values without units and marks of doubt; the header keeps the units
	// Dropped is called with each field whose mark of doubt NoUnits leaves out.
	Dropped func(field string)
}

// AppendQuery appends one line per device. The header is left out where it
// has been printed before (a loop) or is not wanted.
func (f CSV) AppendQuery(dst []byte, s *model.Snapshot, columns []metric.Column[*model.Device]) []byte {
	for i := range s.Devices {
		dst = appendLine(dst, f, columns, func(col metric.Column[*model.Device]) metric.Value { return col.Get(s, &s.Devices[i]) })
	}
	return dst
}

// AppendQueryApps appends one line per process and device.
func (f CSV) AppendQueryApps(dst []byte, s *model.Snapshot, columns []metric.Column[metric.Use]) []byte {
	for _, p := range byDevice(s) {
		for j := range p.Devices {
			u := metric.Use{Process: p, Device: &p.Devices[j]}
			dst = appendLine(dst, f, columns, func(col metric.Column[metric.Use]) metric.Value { return col.Get(s, u) })
		}
	}
	return dst
}

// AppendHeader appends the header of a query.
func AppendHeader[S any](dst []byte, columns []metric.Column[S]) []byte {
	for i, col := range columns {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, col.Title...)
		if col.Unit != "" {
			dst = append(dst, " ["+col.Unit+"]"...)
		}
	}
	return append(dst, '\n')
}

func appendLine[S any](dst []byte, f CSV, columns []metric.Column[S], get func(metric.Column[S]) metric.Value) []byte {
	for i, col := range columns {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		v := get(col)
		if !v.Known() {
			dst = append(dst, bracketed(v.Status)...)
			continue
		}
		text := words.Escape(col.Format(v))
		switch {
		case !f.NoUnits:
			text = words.Mark(v.Bound) + text
		case v.Bound != model.Exact && f.Dropped != nil:
			f.Dropped(col.Title)
		}
		dst = append(dst, CSVField(text)...)
		if col.Unit != "" && !f.NoUnits {
			dst = append(dst, " "+col.Unit...)
		}
	}
	return append(dst, '\n')
}

// bracketed is how a missing value is written: "[N/A]", "[denied]".
func bracketed(s model.Status) string {
	word := words.Missing(s)
	if word == words.Nothing {
		word = "N/A" // as nvidia-smi has it
	}
	return "[" + word + "]"
}

// CSVField is a field of a line: what would break the line apart is quoted. A text
// that a spreadsheet would run as a formula (users choose names of programs) begins
// with an apostrophe, which spreadsheets read as "a text".
func CSVField(s string) string {
	if len(s) > 1 && strings.IndexByte("=+-@", s[0]) >= 0 {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			s = "'" + s
		}
	}
	if !strings.ContainsAny(s, ",\"\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// AppendFields appends the help of a query: every field with its unit, meaning
// and other names.
func AppendFields[S any](dst []byte, table []metric.Field[S], o Options) []byte {
	p := newPrinter(dst, o)
	for i := range table {
		f := &table[i]
		name := `"` + f.Name + `"`
		for _, s := range f.Synonyms {
			name += ` or "` + s.Name + `"`
		}
		p.Line(name, cells.Strong)
		help := f.Help
		if f.Unit != "" {
			help += " [" + f.Unit + "]"
		}
		for _, l := range words.Wrap(help, max(20, p.LayoutWidth()-4)) {
			p.Line("    "+l, cells.Text)
		}
	}
	return p.Buf
}
