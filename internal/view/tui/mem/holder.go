package mem

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// holderPage is what one process holds of a chip, buffer by buffer where a
// source knows them.
type holderPage struct {
	target  act.Target
	last    holder // as it was seen last
	more    *act.Inspected
	sheet   widget.Sheet
	pressed int // the holder pressed last in the list before, from 1
}

func (p *holderPage) draw(s *State, h *widget.Hits, area cells.Area, c chip) {
	gone := true
	for _, x := range holders(s.shown, c, s.pool) {
		if x.p.PID == p.target.PID && x.p.StartTicks == p.target.StartTicks {
			p.last, gone = x, false
		}
	}
	head, body := area.Top(1)
	x := head.Put(1, 0, "process "+strconv.Itoa(p.target.PID)+" on device "+c.title(), cells.Strong)
	if gone {
		head.Put(x+2, 0, "holds nothing here any more: this is what was seen last", cells.Bad)
	}
	p.sheet.Draw(h, body, p.lines(s, c, body.W))
}

func (p *holderPage) lines(s *State, c chip, width int) []lines.Line {
	what := sheet.Part{Title: "Process", Pairs: []sheet.Pair{
		{Name: "Command", Value: sheet.Text(words.Command(p.last.p))}, {Name: "User", Value: sheet.Text(words.Foreign(p.last.p.User))}, {Name: "Job", Value: sheet.Text(words.Job(p.last.p))},
	}}
	out := sheet.Screen(width, what, p.memory(s, c))
	if p.more != nil {
		for _, q := range []model.Pool{model.DRAM, model.L1} {
			if drawn := s.bankLines(p.more.Blocks, c, q, min(width-2, 100)); len(drawn) > 0 {
				out = append(append(out, nil, lines.Styled(" Bank of "+words.PoolName(q), cells.Strong)), drawn...)
			}
		}
	}
	ofChip := func(b act.Buffer) bool {
		return b.Device == c.dev.Index && (b.Chip == "" || c.data().Name == "" || b.Chip == c.data().Name)
	}
	return append(append(out, nil), sheet.Screen(width, Buffers(p.more, ofChip))...)
}

// memory is what the process holds of each pool of the chip, and how that changed.
func (p *holderPage) memory(s *State, c chip) sheet.Part {
	m, k := s.changes().mark, p.last.key(c)
	t := &sheet.Table{Columns: []sheet.Column{{Name: "pool", Least: 9}, {Name: "held", Head: "Held", Right: true, Least: words.FigureWidth}, {Name: "share", Head: "Share"}, {Name: "peak", Head: "Peak", Right: true, Least: words.FigureWidth}}}
	if m != nil {
		t.Columns = append(t.Columns, sheet.Column{Name: "mark", Head: "Since the mark", Right: true})
	}
	for _, q := range model.Pools() {
		share, peak := "", words.Nothing
		if r, _ := part(c.mem(), q, p.last.mem[q]); !math.IsNaN(r) {
			share = percent(r) + " of " + words.Bytes(c.mem().Pools[model.DRAM].Total.V)
			if q != model.DRAM {
				share += " " + words.PoolName(model.DRAM)
			}
		}
		if most := s.changes().top[k][q]; most.Positive() {
			peak = words.FigureColumn(most)
		}
		row := sheet.Row{Cells: []sheet.Value{sheet.Text(words.PoolName(q)), sheet.Text(words.FigureColumn(p.last.mem[q])), sheet.Text(share), sheet.Text(peak)}}
		if m != nil {
			row.Cells = append(row.Cells, sheet.Text(deltaSince(p.last.mem[q], m, k, q)))
		}
		t.Rows = append(t.Rows, row)
	}
	out := sheet.Part{Title: "Memory on this chip", Table: t}
	if p.last.note != "" {
		out.Notes = []sheet.Note{{Level: model.Warning, Text: p.last.note}}
	}
	return out
}

// Buffers are the allocations of a process, the largest first: all, or some. m nil: they
// are still being asked for.
func Buffers(m *act.Inspected, some func(act.Buffer) bool) sheet.Part {
	out := sheet.Part{Title: "Buffers"}
	switch {
	case m == nil:
		out.Notes = []sheet.Note{{Text: "…"}}
		return out
	case m.BufferErr != nil:
		out.Notes = []sheet.Note{{Text: words.Escape(m.BufferErr.Error())}}
		return out
	}
	list := slices.DeleteFunc(slices.Clone(m.Buffers), func(b act.Buffer) bool { return some != nil && !some(b) })
	slices.SortStableFunc(list, func(a, b act.Buffer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	out.Table = &sheet.Table{Columns: []sheet.Column{
		{Name: "bytes", Head: "Size", Right: true, Least: words.FigureWidth}, {Name: "pool", Head: "Pool"}, {Name: "where", Head: "Where"}, {Name: "age", Head: "Age", Right: true}, {Name: "note", Head: "For", Rest: true},
	}}
	for _, b := range list {
		where := "no device"
		if b.Device != model.NoDevice {
			where = fmt.Sprintf("device %d", b.Device)
		}
		if b.Chip != "" {
			where += " " + words.Escape(b.Chip)
		}
		out.Table.Rows = append(out.Table.Rows, sheet.Row{Cells: []sheet.Value{
			sheet.Text(words.BytesColumn(b.Bytes)), sheet.Text(words.Escape(b.Pool)), sheet.Text(where), sheet.Text(words.Duration(b.Age)), sheet.Text(words.Escape(b.Note)),
		}})
	}
	if len(list) == 0 {
		out.Notes = []sheet.Note{{Text: "none"}}
	}
	return out
}
