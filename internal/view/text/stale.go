package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendStale appends a line per dead process: where it left what, how long it has been silent,
// and whether that can be removed.
func AppendStale(dst []byte, list []model.Leftover, now time.Time, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	if g := staleSlots(list, now, &o); len(g.rows) > 0 {
		g.print(p, true)
		p.newline()
	}
	for _, l := range list {
		if l.Blocked != nil && !l.Denied {
			p.sentence("it stays: "+words.Escape(l.Region)+": "+words.Doubt(*l.Blocked), warn)
		}
	}
	p.unseen(list)
	p.denied(list)
	return p.buf
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
		p.sentence(fmt.Sprintf("not seen: %s of %s in %s: dead, or alive in another container; see it from the host",
			words.FigureInText(sum.Bytes()), strings.Join(names, ", "), words.Escape(l.Region)), warn)
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
		p.sentence(fmt.Sprintf("denied: %s is uid %d's: only that user and root can see whether something is stale in it", words.Escape(first), owner), warn)
	case n > 1 && alike:
		p.sentence(fmt.Sprintf("denied: %d regions are uid %d's: only that user and root can see whether something is stale in them", n, owner), warn)
	case n > 1:
		p.sentence(fmt.Sprintf("denied: %d regions are other users': only they and root can see whether something is stale in them", n), warn)
	}
}

// sentence prints a line of prose, wrapped on a terminal.
func (p *printer) sentence(s string, st style) {
	lines := []string{s}
	if p.Width > 0 {
		lines = words.Wrap(s, p.Width-4)
	}
	for i, l := range lines {
		p.blanks(1)
		if i > 0 {
			p.blanks(2)
		}
		p.line(l, st)
	}
}

// staleSlots makes the grid. Where there is room every pool with leftovers
// has a column, else the smaller ones share one.
func staleSlots(list []model.Leftover, now time.Time, o *Options) *grid {
	g := &grid{ruled: true, columns: []column{
		{head: "Dev", least: 3},
		{head: "PID", least: 7, right: true},
		{head: "Name", least: 4},
		{head: "DRAM", least: words.FigureWidth},
		{head: "L1", least: words.FigureWidth, tight: true},
	}}
	small := []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel}
	apart := o.layoutWidth() >= extraWidth
	var columns []model.Pool
	for _, pool := range small {
		if apart && left(list, pool) {
			columns = append(columns, pool)
			g.columns = append(g.columns, column{head: words.PoolName(pool), least: words.FigureWidth, rank: 2, tight: true})
		}
	}
	if !apart {
		g.columns = append(g.columns, column{head: "Other", least: words.FigureWidth, rank: 2, tight: true})
	}
	g.columns = append(g.columns, column{head: "Silent", least: words.DurationWidth, right: true, rank: 1}, column{head: "Region", least: 20, last: true})
	for _, l := range list {
		for i := range l.StaleSlots {
			g.rows = append(g.rows, ghostRow(&l, &l.StaleSlots[i], now, columns, apart, small))
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

func ghostRow(l *model.Leftover, gh *model.StaleSlot, now time.Time, columns []model.Pool, apart bool, small []model.Pool) row {
	device := words.Nothing
	if l.Device != model.NoDevice {
		device = strconv.Itoa(l.Device)
	}
	r := row{cells: []cell{c(device), c(strconv.Itoa(gh.PID)), c(words.Escape(gh.Name))}}
	for _, pool := range append([]model.Pool{model.DRAM, model.L1}, columns...) {
		r.cells = append(r.cells, c(words.FigureColumn(gh.Bytes[pool])))
	}
	if !apart {
		var others model.Sum
		for _, pool := range small {
			if gh.Bytes[pool].Status() != model.Absent {
				others.Add(gh.Bytes[pool])
			}
		}
		r.cells = append(r.cells, c(words.FigureColumn(others.Bytes())))
	}
	age := words.Nothing // since it last wrote: when it died is not known
	if since := now.Sub(gh.Updated); !gh.Updated.IsZero() && since >= 0 {
		age = words.Duration(since)
	}
	r.cells = append(r.cells, c(age), c(words.Escape(strings.TrimPrefix(l.Region, "/dev/shm/"))))
	return r
}
