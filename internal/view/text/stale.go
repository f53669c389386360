package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendStale appends a line per dead process: where it left what, how long it has been silent,
// and whether that can be removed.
func AppendStale(dst []byte, list []model.Leftover, now time.Time, o Options) []byte {
	p := newPrinter(dst, o)
	if g := staleSlots(list, now, &o); len(g.Rows) > 0 {
		p.Table(g)
		p.Newline()
	}
	for _, l := range list {
		if l.Blocked != nil && !l.Denied {
			p.Sentence("it stays: "+words.Escape(l.Region)+": "+words.Doubt(*l.Blocked), cells.Warn)
		}
	}
	p.unseen(list)
	p.denied(list)
	return p.Buf
}

// unseen says whose bytes cannot be judged: their processes may be dead, or
// alive in a place this user cannot see.
func (p *printer) unseen(list []model.Leftover) {
	for _, l := range list {
		if len(l.Unseen) == 0 {
			continue
		}
		var sum model.Sum
		names := make([]string, len(l.Unseen))
		for i := range l.Unseen {
			sum.Add(l.Unseen[i].Bytes.Total())
			names[i] = words.Escape(strconv.Itoa(l.Unseen[i].PID) + " " + l.Unseen[i].Name)
		}
		p.Sentence(fmt.Sprintf("not seen: %s of %s in %s: dead, or alive in another container; see it from the host",
			words.FigureInText(sum.Bytes()), strings.Join(names, ", "), words.Escape(l.Region)), cells.Warn)
	}
}

// denied lists the regions that this user may not read.
func (p *printer) denied(list []model.Leftover) {
	n, owner, alike := 0, 0, true
	first := ""
	for _, l := range list {
		if !l.Denied {
			continue
		}
		if n == 0 {
			first, owner = l.Region, l.Owner
		}
		alike = alike && l.Owner == owner
		n++
	}
	switch {
	case n == 1:
		p.Sentence(fmt.Sprintf("denied: %s is uid %d's: only that user and root can see whether something is stale in it", words.Escape(first), owner), cells.Warn)
	case n > 1 && alike:
		p.Sentence(fmt.Sprintf("denied: %d regions are uid %d's: only that user and root can see whether something is stale in them", n, owner), cells.Warn)
	case n > 1:
		p.Sentence(fmt.Sprintf("denied: %d regions are other users': only they and root can see whether something is stale in them", n), cells.Warn)
	}
}

// staleSlots makes the grid. Where there is room every pool with leftovers
// has a column, else the smaller ones share one.
func staleSlots(list []model.Leftover, now time.Time, o *Options) *lines.Table {
	g := &lines.Table{Ruled: true, Indent: 1, Columns: []lines.Column{
		{Head: "Dev", Least: 3},
		{Head: "PID", Least: 7, Right: true},
		{Head: "Name", Least: 4},
		{Head: "DRAM", Least: words.FigureWidth},
		{Head: "L1", Least: words.FigureWidth, Tight: true},
	}}
	small := []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel}
	apart := o.LayoutWidth() >= extraWidth
	var columns []model.Pool
	for _, pool := range small {
		if apart && left(list, pool) {
			columns = append(columns, pool)
			g.Columns = append(g.Columns, lines.Column{Head: words.PoolName(pool), Least: words.FigureWidth, Rank: 2, Tight: true})
		}
	}
	if !apart {
		g.Columns = append(g.Columns, lines.Column{Head: "Other", Least: words.FigureWidth, Rank: 2, Tight: true})
	}
	g.Columns = append(g.Columns, lines.Column{Head: "Silent", Least: words.DurationWidth, Right: true, Rank: 1}, lines.Column{Head: "Region", Least: 20, Rest: true})
	for _, l := range list {
		for i := range l.StaleSlots {
			g.Rows = append(g.Rows, ghostRow(&l, &l.StaleSlots[i], now, columns, apart, small))
		}
	}
	return g
}

// left reports whether anybody left something in a pool.
func left(list []model.Leftover, pool model.Pool) bool {
	for _, l := range list {
		for i := range l.StaleSlots {
			if l.StaleSlots[i].Bytes[pool].Positive() {
				return true
			}
		}
	}
	return false
}

func ghostRow(l *model.Leftover, gh *model.StaleSlot, now time.Time, columns []model.Pool, apart bool, small []model.Pool) lines.Row {
	device := words.Nothing
	if l.Device != model.NoDevice {
		device = strconv.Itoa(l.Device)
	}
	r := lines.Row{Cells: []lines.Cell{lines.C(device), lines.C(strconv.Itoa(gh.PID)), lines.C(words.Escape(gh.Name))}}
	for _, pool := range append([]model.Pool{model.DRAM, model.L1}, columns...) {
		r.Cells = append(r.Cells, lines.C(words.FigureColumn(gh.Bytes[pool])))
	}
	if !apart {
		var others model.Sum
		for _, pool := range small {
			if gh.Bytes[pool].Status() != model.Absent {
				others.Add(gh.Bytes[pool])
			}
		}
		r.Cells = append(r.Cells, lines.C(words.FigureColumn(others.Bytes())))
	}
	age := words.Nothing // since it last wrote: when it died is not known
	if since := now.Sub(gh.Updated); !gh.Updated.IsZero() && since >= 0 {
		age = words.Duration(since)
	}
	r.Cells = append(r.Cells, lines.C(age), lines.C(words.Escape(strings.TrimPrefix(l.Region, "/dev/shm/"))))
	return r
}
