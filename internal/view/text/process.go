package text

import (
	"cmp"
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// processColumns are the columns of smi's processes, in their order. Which of them go
// where room is short is in the table of fields.
var processColumns = []string{"device", "pid", "user", "job", "time", "busy", "cpu", "rss", "dram", "l1", "l1_small", "trace", "cb", "command"}

// processes makes the grid of processes: one line each, whatever number of
// devices it uses.
func processes(s *model.Snapshot, o *Options) *lines.Table {
	g := &lines.Table{Indent: 1}
	list := byDevice(s)
	var fields []*metric.Process
	names := processColumns
	if o.Names {
		names = slices.Insert(slices.Clone(names), len(names)-1, "status")
	}
	for _, name := range names {
		f := metric.ProcessNamed(name)
		if !inUse(s, f, list, o) {
			continue
		}
		col := lines.Column{Head: f.Head, Least: f.Width, Right: f.Right(), Rank: f.Rank, Tight: f.Form() == metric.Bytes}
		if f.Rank <= 2 { // without these a row means nothing
			col.Rank = 0
		}
		if f.Width == 0 {
			col.Least, col.Rest = min(14, o.LayoutWidth()/4), true
		}
		if f.Kind == metric.Text { // as wide as what is in it
			col.Least = min(col.Least, words.Width(f.Head))
		}
		g.Columns = append(g.Columns, col)
		fields = append(fields, f)
	}
	for _, p := range list {
		var r lines.Row
		for _, f := range fields {
			r.Cells = append(r.Cells, processCell(f, f.Get(s, p), o))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// inUse reports whether a column has anything to show: what hardly any process has is
// left out where none has it, and where the terminal is not wide.
func inUse(s *model.Snapshot, f *metric.Process, list []*model.Process, o *Options) bool {
	switch {
	case f.Sparse && o.LayoutWidth() < wide:
		return false
	case !f.Sparse && f.Rank < 5:
		return true
	}
	return slices.ContainsFunc(list, func(p *model.Process) bool {
		v := f.Get(s, p)
		return v.Known() && (!f.Sparse || v.Num > 0)
	})
}

func processCell(f *metric.Process, v metric.Value, o *Options) lines.Cell {
	text := f.Cell(v)
	switch {
	case f.Kind == metric.Text && f.Width > 0:
		text = words.Truncate(text, widest(f, o))
	case !v.Known():
		return lines.C(text, cells.Faint)
	}
	return lines.C(text)
}

// widest is the most that a column of texts takes: names and jobs have more room than on
// a screen that changes, where a column stays where it is.
func widest(f *metric.Process, o *Options) int {
	if o.LayoutWidth() < wide {
		return max(f.Width, 12)
	}
	return 2 * f.Width
}

// byDevice lists the processes in the order of their first devices; those on
// no device of this host come last.
func byDevice(s *model.Snapshot) []*model.Process {
	list := make([]*model.Process, len(s.Processes))
	for i := range s.Processes {
		list[i] = &s.Processes[i]
	}
	first := func(p *model.Process) int {
		n := math.MaxInt
		for i := range p.Devices {
			if d := p.Devices[i].Device; d != model.NoDevice {
				n = min(n, d)
			}
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b *model.Process) int { return cmp.Compare(first(a), first(b)) })
	return list
}
