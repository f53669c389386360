package mem

import (
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Options is what the page starts with.
type Options struct {
	Only []string // devices by any of their names; empty: all
	// Recorded says that the source can go back and stand still: a map is of the
	// moment that is shown.
	Recorded bool
	// Chart draws a series in a frame: its title, how its numbers are written, and the
	// limit of its scale, 0: there is none.
	Chart func(frame cells.Area, of history.Key, title string, form metric.Form, limit float64)
}

// State is the whole page. Make one with New.
type State struct {
	o     Options
	trend trend // of the present
	shown *model.Snapshot
	past  bool // what is shown is of an earlier moment

	depth  depth
	chip   chipKey // the selected chip
	list   widget.List
	who    widget.List
	pool   model.Pool // in the chart, and what holders are sorted by
	holder holderPage
	banks  banks
}

// depth is how far the user went in.
type depth int

const (
	overview  depth = iota // all chips
	oneChip                // who holds one
	oneHolder              // what one process holds of it
)

// New returns the page before the first snapshot.
func New(o Options) *State { return &State{o: o} }

// OfOneChip is a page with a chip open, which has all keys: for documents.
func OfOneChip() *State { return &State{depth: oneChip} }

// Sample takes in the newest snapshot, for rates, peaks and the mark.
func (s *State) Sample(snap *model.Snapshot) { s.trend.addSample(snap) }

// Show makes a snapshot the one that is drawn: the newest, or one of an earlier moment.
func (s *State) Show(snap *model.Snapshot, past bool) {
	first := s.shown == nil
	if past != s.past {
		s.banks = banks{} // maps are of now
	}
	s.shown, s.past = snap, past
	s.clampSelection()
	if first && len(s.chips()) == 1 && s.depth == overview {
		s.depth = oneChip // nothing to choose from
	}
}

// Forget drops what does not lead to the samples that follow.
func (s *State) Forget() { s.trend = trend{} }

// changes are the rates, peaks and the mark that belong to what is shown: of an earlier
// moment none are known.
func (s *State) changes() *trend {
	if s.past {
		return &trend{}
	}
	return &s.trend
}

// Open goes straight to a device.
func (s *State) Open(bus string) {
	s.chip = chipKey{bus: bus}
	s.depth = overview
	n := 0
	for i, c := range s.chips() {
		if c.dev.BusID == bus {
			if n == 0 {
				s.list.Sel = i
			}
			n++
		}
	}
	if n == 1 {
		s.depth = oneChip
	}
	s.clampSelection()
}

// chips lists the chips shown.
func (s *State) chips() []chip {
	if s.shown == nil {
		return nil
	}
	return chipsOf(s.shown, s.o.Only)
}

// selected is the selected chip; ok is false when there is none at all.
func (s *State) selected() (c chip, ok bool) {
	list := s.chips()
	for _, c := range list {
		if c.key() == s.chip {
			return c, true
		}
	}
	if s.depth == overview && len(list) > 0 {
		return list[min(s.list.Sel, len(list)-1)], true
	}
	return chip{}, false
}

// clampSelection keeps selections on things that exist.
func (s *State) clampSelection() {
	list := s.chips()
	s.list.N = len(list)
	s.list.Clamp()
	for i, c := range list {
		if c.key() == s.chip {
			s.list.Sel = i
			return
		}
	}
	if s.depth == overview && len(list) > 0 {
		s.chip = list[s.list.Sel].key()
	}
}

// Draw draws the page.
func (s *State) Draw(h *widget.Hits, area cells.Area) {
	switch {
	case len(s.chips()) == 0:
		area.Put(1, 0, "There is no device to show.", cells.Strong)
	case s.depth == overview:
		s.drawOverview(h, area)
	default:
		c, ok := s.selected()
		if !ok {
			area.Put(1, 0, "Device "+words.Escape(s.chip.bus)+" is gone.", cells.Bad)
			return
		}
		if s.depth == oneHolder {
			s.holder.draw(s, h, area, c)
		} else {
			s.drawChip(h, area, c)
		}
	}
}

// Mark says since when changes are counted; empty: since the last sample.
func (s *State) Mark() string {
	if m := s.changes().mark; m != nil {
		return "since the mark at " + m.at.Local().Format("15:04:05")
	}
	return ""
}

// Inspected takes in what was found out about a process.
func (s *State) Inspected(ev act.Inspected) {
	if ev.Target.PID == s.holder.target.PID && ev.Target.StartTicks == s.holder.target.StartTicks {
		s.holder.more = &ev
	}
}
