package top

import (
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/filter"
)

// commandColumn is the one that the tree is drawn before and that scrolls sideways.
const commandColumn = "command"

// cellOf is what stands in a column of a row.
func cellOf(f *metric.Process, s *model.Snapshot, r *row) (string, cells.Style) {
	if f.Name == commandColumn {
		return r.branch + r.command(), cells.Text
	}
	v := f.Get(s, r.p)
	switch {
	case v.Known():
		return f.Cell(v), cells.Text
	case r.parent:
		return words.Nothing, cells.Faint
	}
	return f.Cell(v), cells.Faint
}

// filterKind is how values of a field are written in a filter.
func filterKind(f *metric.Process) filter.Kind {
	switch {
	case f.Form() == metric.Bytes:
		return filter.Bytes
	case f.As == metric.Lasted:
		return filter.Seconds
	case f.Name == "device":
		return filter.Number
	case f.Kind == metric.Text || f.As == metric.Date:
		return filter.Text
	}
	return filter.Number
}

// filtered is a value as a filter compares it: bytes as they are, other numbers in the
// unit that is shown.
func filtered(f *metric.Process, v metric.Value) (out filter.Value) {
	switch {
	case !v.Known():
	case f.As == metric.Date:
		out.Texts = []string{time.Unix(int64(v.Num), 0).Local().Format("2006-01-02 15:04:05")}
	case v.List != nil:
		for _, n := range v.List {
			out.Numbers = append(out.Numbers, float64(n))
		}
	case f.Kind == metric.Text:
		out.Texts = []string{words.Escape(v.Text)}
	case f.Form() == metric.Bytes || f.Per == 0:
		out.Numbers = []float64{v.Num}
	default:
		out.Numbers = []float64{v.Num / f.Per}
	}
	return out
}

// filterFields are the fields of processes that a filter knows.
func filterFields() []filter.Field {
	var list []filter.Field
	for _, f := range metric.Processes() {
		field := filter.Field{Name: f.Name, Kind: filterKind(&f), Help: f.Help}
		for _, s := range f.Synonyms {
			field.Aliases = append(field.Aliases, s.Name)
		}
		list = append(list, field)
	}
	return list
}
