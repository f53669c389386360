package mem

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// minChart is the least rows a chart is worth.
const minChart = 7

// drawChip draws one chip: its pools, who holds them, and a chart.
func (s *State) drawChip(h *widget.Hits, area cells.Area, c chip) {
	head, rest := area.Top(1)
	s.drawHead(head, c, cells.Strong)
	list := holders(s.shown, c, s.pool)
	pools := model.Pools()
	bars, rest := rest.Top(len(pools))
	for i, p := range pools {
		var segs []segment
		if p == s.pool {
			segs = segments(c, list, p)
		}
		row := bars.Sub(0, i, bars.W, 1)
		s.drawPool(row, c, p, segs)
		if p == s.pool {
			row.Put(0, 0, "▸", cells.Label)
		}
		h.AddPress(row, func() []tui.Effect { s.pool = p; return nil })
	}
	rest = s.drawBanks(rest, c)
	plot := 0
	if free := rest.H - 1 - min(max(len(list)+1, 3), 8); free >= minChart {
		plot = min(free, 16)
	}
	who, bottom := rest.Bottom(plot)
	s.drawWho(h, who, c, list)
	s.drawChart(bottom, c)
}

// segments are the shares of the holders in the bar of a pool.
func segments(c chip, list []holder, p model.Pool) []segment {
	var out []segment
	for i := range list {
		if r, _ := part(c.mem(), p, list[i].mem[p]); !math.IsNaN(r) {
			out = append(out, segment{r, cells.Series(i)})
		}
	}
	return out
}

// drawWho lists the holders, what belongs to none of them, and the dead.
func (s *State) drawWho(h *widget.Hits, area cells.Area, c chip, list []holder) {
	head, body := area.Top(1)
	x := head.Put(1, 0, "── who holds "+words.PoolName(s.pool)+" ", cells.Faint)
	head.HLine(x, 0, head.W-x-1, cells.Faint)
	rest, others := unattributed(c, list, s.pool)
	dead := staleSlots(s.shown, c)
	s.who.N = len(list) + len(dead)
	if others {
		s.who.N++
	}
	if s.who.N == 0 {
		body.Put(2, 0, "No process.", cells.Faint)
		return
	}
	s.who.Draw(h, body, cells.Selected, func(i int, row cells.Area) {
		switch {
		case i < len(list):
			s.drawHolder(row, c, &list[i], i)
		case others && i == len(list):
			row.Put(1, 0, "(others)", cells.Faint)
			row.PutRight(s.amountAt(row), 0, words.FigureColumn(rest), cells.Faint)
			row.Put(s.amountAt(row)+2, 0, words.Truncate("counted for the chip, but for no visible process", row.W-s.amountAt(row)-3), cells.Faint)
		default:
			s.drawGhost(row, dead[i-len(list)-btoi(others)])
		}
	}, func(i int) []tui.Effect { return s.pressHolder(i) })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pressHolder opens a holder that is pressed twice.
func (s *State) pressHolder(i int) []tui.Effect {
	if s.holder.pressed == i+1 {
		s.holder.pressed = 0
		return s.enter()
	}
	s.holder.pressed = i + 1
	return nil
}

// unattributed is what a chip's figure has beyond its holders'.
func unattributed(c chip, list []holder, p model.Pool) (rest model.Bytes, ok bool) {
	total, bound, known := c.mem().Pools[p].Used.Best()
	if !known {
		return rest, false
	}
	var sum uint64
	for i := range list {
		n, b, _ := list[i].mem[p].Best()
		sum, bound = sum+n, max(bound, b)
	}
	if sum >= total {
		return rest, false
	}
	if bound != model.Exact { // less of something that is at least so much may be anything
		bound = model.Unsure
	}
	return model.BoundBytes(total-sum, bound), true
}

// amountAt is the column at which the amounts of the list end.
func (s *State) amountAt(row cells.Area) int {
	if row.W < wideRow {
		return max(row.W-30, 30)
	}
	return row.W - 42
}

// wideRow is from where on a row of a holder says where its figure comes from.
const wideRow = 100

func (s *State) drawHolder(row cells.Area, c chip, h *holder, i int) {
	end := s.amountAt(row)
	name := max(row.W/3, 20)
	if row.W >= wideRow {
		name = min(row.W*2/5, 90)
	}
	row.Put(1, 0, words.Truncate(strconv.Itoa(h.p.PID)+" "+words.Foreign(h.p.User)+" "+words.Command(h.p), name), cells.Text)
	ok := h.mem[s.pool].Known()
	if bar := end - name - 2 - words.FigureWidth - 1; bar > 3 {
		if r, soft := part(c.mem(), s.pool, h.mem[s.pool]); !math.IsNaN(r) {
			row.Meter(name+2, 0, bar, r, soft, cells.Series(i))
		}
	}
	row.PutRight(end, 0, words.FigureColumn(h.mem[s.pool]), cells.Text)
	tail := row.Sub(end+2, 0, row.W-end-3, 1)
	switch k := h.key(c); {
	case !ok:
		tail.Put(0, 0, words.Truncate(h.note, tail.W), cells.Faint)
	case s.changes().mark != nil:
		tail.Put(0, 0, words.Truncate(deltaSince(h.mem[s.pool], s.changes().mark, k, s.pool), tail.W), cells.Text)
	default:
		text := "peak " + words.Figure(s.changes().top[k][s.pool])
		if row.W >= wideRow {
			text = words.Pad(words.SourceShort(h.source), 8) + "  " + text
		}
		if !h.p.StartTime.IsZero() {
			text += "  since " + since(h.p.StartTime, s.shown.Time)
		}
		tail.Put(0, 0, words.Truncate(text, tail.W), cells.Faint)
	}
}

// deltaSince says how a holding changed since the mark.
func deltaSince(now model.Bytes, m *mark, k holderKey, p model.Pool) string {
	then, ok := m.held[k]
	if !ok {
		return "new since the mark"
	}
	return delta(now, then[p])
}

// since is a clock time, with the day where it was another one.
func since(t, now time.Time) string {
	if now.Sub(t) < 20*time.Hour {
		return t.Local().Format("15:04")
	}
	return t.Local().Format("Jan 2 15:04")
}

func (s *State) drawGhost(row cells.Area, g *model.StaleSlot) {
	end := s.amountAt(row)
	row.Put(1, 0, words.Truncate(fmt.Sprintf("(dead) %d %s", g.PID, words.Escape(g.Name)), end-words.FigureWidth-2), cells.Warn)
	row.PutRight(end, 0, words.FigureColumn(g.Bytes[s.pool]), cells.Warn)
	text := "not counted"
	if wrote := words.Wrote(g, s.shown.Time); wrote != "" {
		text += ", " + wrote
	}
	row.Put(end+2, 0, words.Truncate(text, row.W-end-3), cells.Warn)
}

// drawChart draws the chosen pool over time.
func (s *State) drawChart(area cells.Area, c chip) {
	frame := chart.Frames(area, 1, 1)
	if frame == nil {
		return
	}
	limit := 0.0
	if _, total, ok := words.Taken(s.pool, &c.mem().Pools[s.pool]); ok {
		limit = float64(total)
	}
	s.o.Chart(frame[0], gauge.ChipKey(c.dev, c.i, s.pool), words.PoolName(s.pool), metric.Bytes, limit)
}
