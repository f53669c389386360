package mem

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// banks is the map of the chip that is shown, from the largest holder whose
// allocator is known block by block.
type banks struct {
	of    act.Target
	asked time.Time // by the snapshots' clock
	known *blocks.Process
}

// mapEvery is how often a map is asked for: it may have a hundred thousand
// blocks.
const mapEvery = 2 * time.Second

// Wants is what the page has to ask for, after a sample or a key.
func (s *State) Wants() []tui.Effect {
	c, ok := s.selected()
	if !ok || s.depth != oneChip || s.past {
		return nil
	}
	for _, h := range holders(s.shown, c, s.pool) {
		if h.source != model.FromTrack && h.source != model.FromUprobe {
			continue
		}
		of := act.Target{PID: h.p.PID, StartTicks: h.p.StartTicks}
		since := s.shown.Time.Sub(s.banks.asked).Abs()
		if of == s.banks.of && (since == 0 || since < mapEvery && !s.o.Recorded) {
			return nil
		}
		if of != s.banks.of {
			s.banks.known = nil
		}
		s.banks.of, s.banks.asked = of, s.shown.Time
		return []tui.Effect{act.Map{Target: of}}
	}
	s.banks = banks{}
	return nil
}

// Mapped takes in the map.
func (s *State) Mapped(ev act.Mapped) {
	if ev.Target == s.banks.of {
		s.banks.known = ev.Blocks
	}
}

// wouldFit is the buffer that the screen asks about: one that people ask for.
func wouldFit(p model.Pool) blocks.Request {
	if p == model.DRAM || p == model.Trace {
		return blocks.Request{Bytes: 512 << 20}
	}
	return blocks.Request{Bytes: 8 << 20}
}

// bankLines are the lines about the banks of a chip, or none.
func (s *State) bankLines(p *blocks.Process, c chip, pool model.Pool, width int) []lines.Line {
	id, ok := c.data().ID.Get()
	if p == nil || !ok {
		return nil
	}
	o := bankmap.Options{Width: width, Now: s.shown.Time, Chip: func(uint64) string { return "device " + c.title() }}
	return bankmap.OnChip(p, id, pool, wouldFit(pool), o)
}

// drawBanks draws the map of the pool that is shown and returns what is left of
// the area.
func (s *State) drawBanks(area cells.Area, c chip) cells.Area {
	drawn := s.bankLines(s.banks.known, c, s.pool, area.W-2)
	if len(drawn) == 0 || area.H < len(drawn)+6 {
		return area
	}
	top, rest := area.Top(len(drawn))
	for y, line := range drawn {
		line.Put(top.Sub(0, 0, top.W-1, top.H), 1, y)
	}
	return rest
}
