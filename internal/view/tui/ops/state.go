// Package ops is the screen of `ttmon ops`: what the chips work on, operation by
// operation, as perf top for functions. It can be frozen, sorted, filtered and
// narrowed to one process.
//
// It is a screen of view/tui: a pure update and a drawing. Which rows there are,
// and their words, are view/text's: the printed table has the same.
package ops

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Options is what the screen starts with.
type Options struct {
	Theme    string
	Mouse    bool
	Round    bool
	Source   string // where snapshots come from; empty: they say it
	Interval time.Duration
	Which    metric.OpChoice // the flags
}

// Screen is the state.
type Screen struct {
	widget.Filtered
	o      Options
	which  metric.OpChoice
	live   *model.Snapshot
	shown  *model.Snapshot // live, or an older one while the screen is frozen
	frozen bool
	lost   string // why there is no update
	lostAt time.Time

	rows []*metric.Op
	list widget.List
	sel  rowID // of the selected row; zero at the top

	around widget.Around
}

// rowID finds a row again in the next snapshot.
type rowID struct {
	process model.ProcessID
	device  int
	chip    string
	name    string
	late    bool
}

func idOf(o *metric.Op) rowID {
	return rowID{o.Process.ID(), o.Chip.Device, o.Chip.Chip, o.Name, o.Late}
}

// New returns a screen without a snapshot.
func New(o Options) *Screen { return &Screen{o: o, which: o.Which} }

// Appearance implements tui.App.
func (s *Screen) Appearance() tui.Appearance {
	return tui.Appearance{Theme: s.o.Theme, Mouse: s.o.Mouse, Round: s.o.Round}
}

// Surround sets the screen around this one.
func (s *Screen) Surround(a widget.Around) { s.around = a }

// Update implements tui.App.
func (s *Screen) Update(ev tui.Event) []tui.Effect {
	switch ev := ev.(type) {
	case tui.Sample:
		s.lost, s.live = "", ev.Snapshot
		s.arrange()
	case tui.Jumped:
		s.frozen = false
	case tui.Lost:
		s.lost, s.lostAt = words.Escape(ev.Err.Error()), ev.At
	case tui.Key:
		return s.key(ev)
	case tui.Paste:
		s.Paste(string(ev), s.setFilter)
	case tui.Mouse:
		if ev.Action != tui.Release {
			return s.Hits.Send(ev)
		}
	}
	return nil
}

// arrange lists the rows, and keeps the selection on its row.
func (s *Screen) arrange() {
	if !s.frozen || s.shown == nil {
		s.shown = s.live
	}
	if s.shown == nil {
		return
	}
	s.rows = s.which.Rows(s.shown)
	s.list.N = len(s.rows)
	if s.sel != (rowID{}) {
		if i := slices.IndexFunc(s.rows, func(o *metric.Op) bool { return idOf(o) == s.sel }); i >= 0 {
			s.list.Sel = i
		}
	}
	s.list.Clamp()
}

// remember notes which row is selected. At the top none is: what takes most is
// to be seen there.
func (s *Screen) remember() {
	s.sel = rowID{}
	if s.list.Sel > 0 && s.list.Sel < len(s.rows) {
		s.sel = idOf(s.rows[s.list.Sel])
	}
}

func (s *Screen) setFilter(t string) {
	s.which.Filter = t
	s.list.Sel, s.sel = 0, rowID{}
	s.arrange()
}

// freeze stops the table where it is, and continues it. Snapshots are still
// taken: rates are of the last interval when it continues.
func (s *Screen) freeze() {
	s.frozen = !s.frozen && s.shown != nil
	s.arrange()
}

// sortBy chooses the order. Choosing the one that there is reverses it.
func (s *Screen) sortBy(order string) {
	s.which.Reverse = order == s.which.Sort && !s.which.Reverse
	s.which.Sort = order
	s.arrange()
}

// turn sorts by the next column, or by the one before.
func (s *Screen) turn(by int) {
	orders := metric.OpOrders()
	i := max(slices.Index(orders, s.which.Sort), 0)
	s.which.Sort, s.which.Reverse = orders[(i+by+len(orders))%len(orders)], false
	s.arrange()
}

// oneProcess narrows the table to the process of the selected row, or shows all
// again.
func (s *Screen) oneProcess() {
	switch {
	case s.which.PID != s.o.Which.PID:
		s.which.PID = s.o.Which.PID
	case s.list.Sel < len(s.rows):
		s.which.PID = s.rows[s.list.Sel].Process.PID
	}
	s.arrange()
}

// back undoes one thing that narrows the table; false when there is none.
func (s *Screen) back() bool {
	switch {
	case s.which.Filter != "":
		s.setFilter("")
	case s.which.PID != s.o.Which.PID:
		s.oneProcess()
	case s.frozen:
		s.freeze()
	default:
		return false
	}
	return true
}

// Draw implements tui.App.
func (s *Screen) Draw(g *cells.Grid) {
	s.Filtered.Draw(g, s.draw, s.around.Leaves(s.keys()), s.helpLines())
}
