package mem

import (
	"math"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// drawOverview draws all chips, with as much of each as there is room for.
func (s *State) drawOverview(h *widget.Hits, area cells.Area) {
	list := s.chips()
	height := 1
	for _, try := range []int{6, 5, 2} {
		if len(list)*try <= area.H+1 {
			height = try
			break
		}
	}
	if height == 1 {
		s.drawLines(h, area, list)
		return
	}
	for i, c := range list {
		box := area.Sub(0, i*height, area.W, height)
		s.drawSummary(box, c, height, i == s.list.Sel)
		h.AddPress(box, s.choose(i))
	}
	h.Add(area.Sub(0, len(list)*height, area.W, area.H), func(tui.Mouse) []tui.Effect { return nil })
}

// choose selects a chip by the mouse; again, it opens it.
func (s *State) choose(i int) func() []tui.Effect {
	return func() []tui.Effect {
		list := s.chips()
		if i >= len(list) {
			return nil
		}
		again := s.list.Sel == i
		s.list.Sel, s.chip = i, list[i].key()
		if again {
			return s.enter()
		}
		return nil
	}
}

// drawLines draws a row per chip.
func (s *State) drawLines(h *widget.Hits, area cells.Area, list []chip) {
	heading, body := area.Top(1)
	heading.Fill(' ', cells.Heading)
	heading.Put(1, 0, "Chip", cells.Heading)
	width := titleWidth(list)
	x := 2 + width
	bar := max(area.W-x-words.FigurePairWidth-6-13-14-3, 4)
	heading.Put(x, 0, "DRAM", cells.Heading)
	heading.PutRight(x+bar+1+words.FigurePairWidth+6+12, 0, s.changeTitle(), cells.Heading)
	heading.PutRight(area.W, 0, "L1", cells.Heading)
	s.list.N = len(list)
	s.list.Draw(h, body, cells.Selected, func(i int, row cells.Area) {
		c := list[i]
		row.Put(1, 0, words.Truncate(c.title(), width), cells.Strong)
		r, soft, _ := share(c.mem(), model.DRAM)
		if c.dev.State != model.StateOK { // a bar would look current
			text, style := s.condition(c.dev)
			row.Put(x, 0, words.Truncate(text+" "+words.StateReason(c.dev), bar), style)
		} else {
			row.Shade(x, 0, bar, r, soft, load(r))
		}
		at := x + bar + 1 + words.FigurePairWidth
		row.PutRight(at, 0, used(c.mem(), model.DRAM), cells.Text)
		row.PutRight(at+6, 0, percent(r), cells.Text)
		row.PutRight(at+18, 0, s.change(c, model.DRAM), cells.Text)
		row.PutRight(row.W, 0, used(c.mem(), model.L1), cells.Text)
	}, func(i int) []tui.Effect { return s.pressLine(list, i) })
}

// pressLine opens a row that is pressed while it is selected already.
func (s *State) pressLine(list []chip, i int) []tui.Effect {
	again := s.chip == list[i].key()
	s.chip = list[i].key()
	if again {
		return s.enter()
	}
	return nil
}

func titleWidth(list []chip) int {
	w := 4
	for _, c := range list {
		w = max(w, words.Width(c.title()))
	}
	return min(w, 18)
}

// drawSummary draws a chip in two rows (DRAM, L1), or in five: title, DRAM,
// L1, the small pools, the largest holders.
func (s *State) drawSummary(box cells.Area, c chip, height int, selected bool) {
	style := cells.Strong
	if selected {
		style = cells.Selected
	}
	if height == 2 {
		w := titleWidth(s.chips())
		box.Put(1, 0, words.Fit(c.title(), w), style)
		if text, style := s.condition(c.dev); text != "" {
			box.Put(1, 1, words.Truncate(text, w), style)
		}
		s.drawPool(box.Sub(w+1, 0, box.W-w-1, 1), c, model.DRAM, nil)
		s.drawPool(box.Sub(w+1, 1, box.W-w-1, 1), c, model.L1, nil)
		return
	}
	s.drawHead(box.Sub(0, 0, box.W, 1), c, style)
	s.drawPool(box.Sub(0, 1, box.W, 1), c, model.DRAM, nil)
	s.drawPool(box.Sub(0, 2, box.W, 1), c, model.L1, nil)
	box.Put(1, 3, words.Truncate(smallPools(c.mem()), box.W-2), cells.Text)
	box.Put(1, 4, words.Truncate(s.largest(c, box.W-2), box.W-2), cells.Faint)
}

// condition is the word for the state of a device that is not ok, and its style.
func (s *State) condition(d *model.Device) (string, cells.Style) {
	is := assess.Of(s.shown).Device(d.Index)
	if is.Level == model.Fine {
		return "", cells.Text
	}
	return words.Kind(is.Kind), cells.Of(is.Level)
}

// drawHead names a chip and says how far its figures can be trusted.
func (s *State) drawHead(row cells.Area, c chip, style cells.Style) {
	x := row.Put(0, 0, " device "+c.title()+" ", style) + 1
	if text, style := s.condition(c.dev); text != "" {
		x = row.Put(x, 0, text, style) + 2
	}
	if why := words.Reasons(c.mem().Tracking, c.mem().Doubts, s.shown.Source); len(why) > 0 {
		row.Put(x, 0, words.Truncate(strings.Join(why, "; "), row.W-x-1), cells.Warn)
	} else if s.depth != overview && !exact(c.mem()) || s.depth == overview && s.chips()[0].key() == c.key() { // once on a screen
		row.Put(x, 0, words.Truncate(words.Quiet(s.shown, shows(s.shown, s.o.Only)), row.W-x-1), cells.Faint)
	}
}

// exact reports whether a chip's DRAM figure is the truth.
func exact(m *model.Memory) bool {
	n, _, _ := m.Pools[model.DRAM].Used.Best()
	return m.Pools[model.DRAM].Used.Exactly(n)
}

// smallPools lists the pools that are small against the chip.
func smallPools(m *model.Memory) string {
	var parts []string
	for _, p := range []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel} {
		text := words.PoolName(p) + " " + used(m, p)
		if p == model.CB && m.CB != "" && m.Pools[p].Used.Known() {
			text += " (" + words.CBMeaningShort(m.CB) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "   ")
}

// largest names the largest holders of a chip's DRAM in a row of the given
// width. They share it: one alone is not cut beside an empty row.
func (s *State) largest(c chip, width int) string {
	var parts []string
	list := holders(s.shown, c, model.DRAM)
	for _, h := range list {
		before, after := strconv.Itoa(h.p.PID)+" ", " "+words.Figure(h.mem[model.DRAM])
		room := max(width/len(list)-3-words.Width(before+after), 16)
		parts = append(parts, before+words.Truncate(words.Command(h.p), room)+after)
	}
	if len(parts) == 0 {
		return "no process"
	}
	return strings.Join(parts, "   ")
}

// load is the style of a bar.
func load(r float64) cells.Style {
	if l := assess.Fill(r); l > model.Fine {
		return cells.Of(l)
	}
	return cells.Fill
}

// percent says a share; a little is never said to be nothing.
func percent(r float64) string {
	switch {
	case math.IsNaN(r):
		return words.Nothing
	case r > 0 && r < 0.01:
		return "<1 %"
	}
	return words.Percent(r)
}

// changeTitle and change are the column of rates, or of changes since a mark.
func (s *State) changeTitle() string {
	if s.changes().mark != nil {
		return "since mark"
	}
	return "change"
}

func (s *State) change(c chip, p model.Pool) string {
	if m := s.changes().mark; m != nil {
		return delta(c.mem().Pools[p].Used, m.chips[c.key()][p])
	}
	return speed(s.changes().rate[c.key()][p])
}

// Widths of the parts of a pool's row.
const (
	labelWidth  = 11
	pairWidth   = words.FigurePairWidth + 1
	pctWidth    = 7
	ofWidth     = 8 // " of DRAM"
	changeWidth = 13
	peakWidth   = 16
)

// drawPool draws one pool as a row: name, bar, figures, change, peak.
// Segments, where given, are drawn into the bar, each with its share.
func (s *State) drawPool(row cells.Area, c chip, p model.Pool, segments []segment) {
	m := c.mem()
	row.Put(1, 0, words.PoolName(p), cells.Label)
	bar := row.W - labelWidth - pairWidth - pctWidth - changeWidth - peakWidth
	wide, showPeak := bar >= 8+ofWidth+12, bar >= 8
	if wide {
		bar -= ofWidth
	}
	if !showPeak {
		bar += peakWidth
	}
	bar = max(bar, 0)
	r, soft, of := share(m, p)
	row.Shade(labelWidth, 0, bar, r, soft, load(r))
	drawSegments(row.Sub(labelWidth, 0, bar, 1), r, segments)
	x := labelWidth + bar + pairWidth
	row.PutRight(x, 0, used(m, p), cells.Text)
	x += pctWidth
	row.PutRight(x, 0, percent(r), cells.Text)
	if wide {
		if of != "" && !math.IsNaN(r) {
			row.Put(x, 0, " of "+of, cells.Faint)
		}
		x += ofWidth
	}
	row.PutRight(x+changeWidth, 0, s.change(c, p), cells.Text)
	if v := s.changes().peak[c.key()][p]; showPeak && m.Pools[p].Used.Known() {
		row.PutRight(row.W-1, 0, "peak "+words.Figure(v), cells.Faint)
	}
}

// segment is a part of a bar.
type segment struct {
	share float64 // of the whole bar, 0..1
	style cells.Style
}

// drawSegments colours the filled part of a bar by who holds it.
func drawSegments(bar cells.Area, filled float64, list []segment) {
	end := words.Filled(filled, bar.W)
	x := 0.0
	for _, seg := range list {
		from := int(math.Round(x * float64(bar.W)))
		x += seg.share
		to := min(max(int(math.Round(x*float64(bar.W))), from), end)
		bar.Paint(from, 0, to-from, seg.style)
	}
}
