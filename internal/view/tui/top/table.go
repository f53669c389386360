package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/filter"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// table is the process table.
type table struct {
	filterText string
	filter     *filter.Filter
	rows       []row // what is listed, in order
	total      int   // how many there are without the filter
	sel        id    // the selected process
	cursor     int   // its row
	scroll     int
	sideways   int // cells the command is scrolled by
	height     int // rows drawn last
	tagged     map[id]string
}

// setup checks and takes over the configuration of the table.
func (t *table) setup(c *config.Processes) error {
	for _, name := range append([]string{c.Sort}, c.Columns...) {
		if metric.ProcessNamed(name) == nil {
			return fmt.Errorf("top.processes: unknown column %q: one of %s", name, strings.Join(columnNames(), ", "))
		}
	}
	f, err := filter.Compile(c.Filter, filterFields())
	if err != nil {
		return fmt.Errorf("top.processes.filter %q: %w", c.Filter, err)
	}
	t.filter, t.filterText = f, c.Filter
	return nil
}

// setFilter changes the filter; a wrong one is returned as an error and
// changes nothing.
func (t *table) setFilter(s *State, text string) error {
	f, err := filter.Compile(text, filterFields())
	if err != nil {
		return err
	}
	t.filter, t.filterText = f, text
	t.build(s)
	return nil
}

// build makes the rows of the snapshot shown: filtered, sorted, as a tree.
func (t *table) build(s *State) {
	t.rows = t.rows[:0]
	if s.shown == nil {
		return
	}
	t.total = len(s.shown.Processes)
	shown := map[int]bool{}
	for _, d := range s.dev.list(s) {
		shown[d.Index] = true
	}
	only := len(s.cfg.Top.Devices.Only) > 0
	fields := metric.Processes()
	for i := range s.shown.Processes {
		p := &s.shown.Processes[i]
		if only && !slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return shown[u.Device] }) {
			t.total--
			continue
		}
		if t.filter.Match(func(i int) filter.Value { return filtered(&fields[i], fields[i].Get(s.shown, p)) }) {
			t.rows = append(t.rows, row{p: p, sort: s.sortValue(p)})
		}
	}
	order := s.rowOrder()
	slices.SortStableFunc(t.rows, func(a, b row) int { return order(&a, &b) })
	if s.cfg.Top.Processes.Tree {
		t.rows = tree(t.rows, s.sortValue, order)
	}
	t.restoreSelection()
	t.forgetTags(s.shown)
}

// sortField is the field sorted by.
func (s *State) sortField() *metric.Process { return metric.ProcessNamed(s.cfg.Top.Processes.Sort) }

func (s *State) sortValue(p *model.Process) metric.Value { return s.sortField().Get(s.shown, p) }

// rowOrder compares rows by the column sorted by; rows without a value come
// last either way, and the pid decides between equals.
func (s *State) rowOrder() func(a, b *row) int {
	down := s.cfg.Top.Processes.Descending
	return func(a, b *row) int {
		by := metric.Compare(a.sort, b.sort)
		if down && a.sort.Known() && b.sort.Known() {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.p.PID, b.p.PID), cmp.Compare(a.p.StartTicks, b.p.StartTicks))
	}
}

// restoreSelection finds the selected process again, or selects its neighbour.
func (t *table) restoreSelection() {
	if i := slices.IndexFunc(t.rows, func(r row) bool { return r.id() == t.sel }); i >= 0 {
		t.cursor = i
		return
	}
	t.cursor = min(max(t.cursor, 0), max(len(t.rows)-1, 0))
	t.sel = id{}
	if len(t.rows) > 0 {
		t.sel = t.rows[t.cursor].id()
	}
}

// selected is the selected row, or nil.
func (t *table) selected() *row {
	if t.cursor < len(t.rows) {
		return &t.rows[t.cursor]
	}
	return nil
}

// forgetTags drops the tags of processes that are gone.
func (t *table) forgetTags(snap *model.Snapshot) {
	for tag := range t.tagged {
		if !slices.ContainsFunc(snap.Processes, func(p model.Process) bool { return p.PID == tag.pid && p.StartTicks == tag.start }) {
			delete(t.tagged, tag)
		}
	}
}

// tag tags or untags the selected process and moves on, as in htop.
func (t *table) tag(s *State) {
	r := t.selected()
	if r == nil || r.parent {
		return
	}
	if _, ok := t.tagged[r.id()]; ok {
		delete(t.tagged, r.id())
	} else {
		if t.tagged == nil {
			t.tagged = map[id]string{}
		}
		t.tagged[r.id()] = r.command()
	}
	t.move(s, widget.Down)
}

func (t *table) move(s *State, m widget.Motion) {
	page := max(t.height-1, 1)
	switch m {
	case widget.Up:
		t.cursor--
	case widget.Down:
		t.cursor++
	case widget.PageUp:
		t.cursor -= page
	case widget.PageDown:
		t.cursor += page
	case widget.First:
		t.cursor = 0
	case widget.Last:
		t.cursor = len(t.rows) - 1
	case widget.Left:
		t.sideways = max(t.sideways-4, 0)
	case widget.Right:
		t.sideways += 4
	}
	t.cursor = min(max(t.cursor, 0), max(len(t.rows)-1, 0))
	if len(t.rows) > 0 {
		t.sel = t.rows[t.cursor].id()
	}
}
