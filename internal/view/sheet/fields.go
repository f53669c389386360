package sheet

import (
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Columns are those of a table of fields.
func Columns[S any](fields []metric.Field[S]) []Column {
	list := make([]Column, 0, len(fields))
	for i := range fields {
		f := &fields[i]
		list = append(list, Column{
			Name: f.Name, Head: f.Head, Help: f.Help, Right: f.Right(), Rank: max(f.Rank-1, 0), Least: f.Width, Rest: i == len(fields)-1 && !f.Right(),
		})
	}
	return list
}

// TableOf is a table of things. Columns that hardly any thing has are left out where
// none has.
func TableOf[S any](fields []metric.Field[S], s *model.Snapshot, things []S) *Table {
	t := &Table{Rows: []Row{}}
	for _, thing := range things {
		t.Rows = append(t.Rows, Row{Cells: Cells(fields, s, thing)})
	}
	columns := Columns(fields)
	for i := len(columns) - 1; i >= 0; i-- {
		if fields[i].Sparse && !slices.ContainsFunc(t.Rows, func(r Row) bool { return !r.Cells[i].Gone }) {
			columns = slices.Delete(columns, i, i+1)
			for n := range t.Rows {
				t.Rows[n].Cells = slices.Delete(t.Rows[n].Cells, i, i+1)
			}
		}
	}
	t.Columns = columns
	return t
}

// Cells are what a thing has in each column.
func Cells[S any](fields []metric.Field[S], s *model.Snapshot, thing S) []Value {
	list := make([]Value, len(fields))
	for i := range fields {
		list[i] = ValueOf(&fields[i], fields[i].Get(s, thing))
	}
	return list
}

// ValueOf is a value of a field.
func ValueOf[S any](f *metric.Field[S], v metric.Value) Value {
	out := Value{Text: strings.TrimRight(f.Cell(v), " "), Gone: !v.Known(), Why: words.Escape(v.Why), Level: v.Level}
	if v.Status == model.Absent && v.Text == "" {
		out.Text = words.Nothing // one mark for what is missing; why is beside it
	}
	if v.Known() && f.Kind != metric.Text {
		out.N = &v.Num
	}
	return out
}
