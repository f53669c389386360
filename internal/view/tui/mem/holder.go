package mem

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/words"
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
	p.sheet.Draw(h, body, p.entries(s, c))
}

func (p *holderPage) entries(s *State, c chip) []widget.Entry {
	out := []widget.Entry{
		{Heading: "Process"},
		{Name: "Command", Value: words.Command(p.last.p)},
		{Name: "User", Value: words.Foreign(p.last.p.User)},
		{Name: "Job", Value: words.Job(p.last.p)},
		{Heading: "Memory on this chip"},
	}
	k := p.last.key(c)
	for _, q := range model.Pools() {
		value := words.Figure(p.last.mem[q])
		if r, _ := part(c.mem(), q, p.last.mem[q]); !math.IsNaN(r) {
			value = words.PadLeft(value, words.FigureWidth) + words.PadLeft(percent(r), 7) +
				" of " + words.Bytes(c.mem().Pools[model.DRAM].Total.V)
			if q != model.DRAM {
				value += " " + words.PoolName(model.DRAM)
			}
		}
		if peak := s.changes().top[k][q]; peak.Positive() {
			value += "   peak " + words.Figure(peak)
		}
		if m := s.changes().mark; m != nil {
			value += "   " + deltaSince(p.last.mem[q], m, k, q)
		}
		out = append(out, widget.Entry{Name: words.PoolName(q), Value: value})
	}
	if p.last.note != "" {
		out = append(out, widget.Entry{Name: "Note", Value: p.last.note, Style: cells.Warn})
	}
	if p.more != nil {
		for _, q := range []model.Pool{model.DRAM, model.L1} {
			for i, line := range s.bankLines(p.more.Blocks, c, q, 100) {
				if i == 0 {
					out = append(out, widget.Entry{Heading: "Bank of " + words.PoolName(q)})
				}
				out = append(out, widget.Entry{Value: line.String(), Wide: true, Table: true})
			}
		}
	}
	return append(out, p.buffers(c)...)
}

// buffers lists the allocations on this chip, the largest first.
func (p *holderPage) buffers(c chip) []widget.Entry {
	out := []widget.Entry{{Heading: "Buffers"}}
	switch m := p.more; {
	case m == nil:
		return append(out, widget.Entry{Value: "…"})
	case m.BufferErr != nil:
		return append(out, widget.Entry{Value: words.Escape(m.BufferErr.Error()), Style: cells.Faint, Wide: true})
	}
	list := slices.DeleteFunc(slices.Clone(p.more.Buffers), func(b act.Buffer) bool {
		return b.Device != c.dev.Index || b.Chip != "" && c.data().Name != "" && b.Chip != c.data().Name
	})
	slices.SortStableFunc(list, func(a, b act.Buffer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, b := range list {
		out = append(out, widget.Entry{
			Name:  words.BytesColumn(b.Bytes),
			Value: fmt.Sprintf("%-8s %6s old  %s", words.Escape(b.Pool), words.Duration(b.Age), words.Escape(b.Note)), Table: true,
		})
	}
	if len(list) == 0 {
		out = append(out, widget.Entry{Value: "none on this chip", Style: cells.Faint})
	}
	return out
}
