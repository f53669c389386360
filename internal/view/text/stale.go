package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendStale appends a line per dead process: where it left what, since when,
// and whether that can be removed.
func AppendStale(dst []byte, list []model.Leftover, now time.Time, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	if g := ghosts(list, now, &o); len(g.rows) > 0 {
		g.print(p, true)
		p.newline()
	}
	for _, l := range list {
		if l.Blocked != "" && !l.Denied {
			reason := l.Blocked
			if !strings.HasPrefix(reason, l.Region) {
				reason = l.Region + ": " + reason
			}
			p.sentence("it stays: "+words.Escape(reason), warn)
		}
	}
	p.denied(list)
	return p.buf
}

// denied says into which regions nobody here may look.
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

// ghosts makes the grid. Where there is room every pool that somebody left
// something in has a column, else the smaller ones share one.
func ghosts(list []model.Leftover, now time.Time, o *Options) *grid {
	g := &grid{ruled: true, columns: []column{
		{head: "Dev", least: 3},
		{head: "PID", least: 7, right: true},
		{head: "Name", least: 4},
		{head: "DRAM", least: words.BytesWidth},
		{head: "L1", least: words.BytesWidth},
	}}
	small := []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel}
	apart := o.layoutWidth() >= extraWidth
	var columns []model.Pool
	for _, pool := range small {
		if apart && left(list, pool) {
			columns = append(columns, pool)
			g.columns = append(g.columns, column{head: words.PoolName(pool), least: words.BytesWidth, rank: 2})
		}
	}
	if !apart {
		g.columns = append(g.columns, column{head: "Other", least: words.BytesWidth, rank: 2})
	}
	g.columns = append(g.columns, column{head: "Age", least: words.DurationWidth, right: true, rank: 1}, column{head: "Region", least: 20, last: true})
	for _, l := range list {
		for i := range l.Ghosts {
			g.rows = append(g.rows, ghostRow(&l, &l.Ghosts[i], now, columns, apart, small))
		}
	}
	return g
}

// left tells whether anybody left something in a pool.
func left(list []model.Leftover, pool model.Pool) bool {
	for _, l := range list {
		for i := range l.Ghosts {
			if v, ok := l.Ghosts[i].Bytes[pool].Get(); ok && v > 0 {
				return true
			}
		}
	}
	return false
}

func ghostRow(l *model.Leftover, gh *model.Ghost, now time.Time, columns []model.Pool, apart bool, small []model.Pool) row {
	device := words.Nothing
	if l.Device != model.NoDevice {
		device = strconv.Itoa(l.Device)
	}
	r := row{cells: []cell{c(device), c(strconv.Itoa(gh.PID)), c(words.Escape(gh.Name))}}
	for _, pool := range append([]model.Pool{model.DRAM, model.L1}, columns...) {
		r.cells = append(r.cells, c(words.Reading(gh.Bytes[pool], words.BytesColumn)))
	}
	if !apart {
		var others uint64
		for _, pool := range small {
			others += gh.Bytes[pool].V
		}
		r.cells = append(r.cells, c(words.BytesColumn(others)))
	}
	age := words.Nothing
	if since := now.Sub(gh.Updated); !gh.Updated.IsZero() && since >= 0 {
		age = words.Duration(since)
	}
	r.cells = append(r.cells, c(age), c(words.Escape(strings.TrimPrefix(l.Region, "/dev/shm/"))))
	return r
}
