package top

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// badge is a piece of the title.
type badge struct {
	text  string
	style cells.Style
	rank  int // the highest go first when room is short; 0 never goes
}

// Ranks of the title: trouble, DRAM, power, source, and then the rest.
const (
	always = iota
	rankDRAM
	rankPower
	rankSource
	rankCount
	rankHost
	rankOK
	rankBoard
	rankInterval
	rankMachine
)

// drawTitle writes the totals at the left and the state of affairs at the
// right, as much of them as fits.
func (s *State) drawTitle(row cells.Area) {
	left, right := fitTitle(s.summary(), s.badges(), row.W)
	x := 1
	for _, b := range left {
		x = row.Put(x, 0, b.text, b.style) + 2
	}
	x = row.W
	for i := len(right) - 1; i >= 0; i-- {
		x -= words.Width(right[i].text) + 1
		row.Put(x, 0, right[i].text, right[i].style)
	}
}

// fitTitle drops what matters least until the rest fits. What never goes may
// be cut at the end.
func fitTitle(left, right []badge, w int) (l, r []badge) {
	last := func(list []badge) (at, rank int) {
		at = -1
		for i := range list {
			if list[i].rank >= rank && list[i].rank > always {
				at, rank = i, list[i].rank
			}
		}
		return at, rank
	}
	for width(left)+width(right) > w {
		i, lr := last(left)
		j, rr := last(right)
		switch {
		case lr == always && rr == always:
			return left, right
		case lr > rr:
			left = slices.Delete(left, i, i+1)
		default:
			right = slices.Delete(right, j, j+1)
		}
	}
	return left, right
}

func width(list []badge) int {
	sum := 1
	for _, b := range list {
		sum += words.Width(b.text) + 2
	}
	return sum
}

// badges are what must be seen on every page.
func (s *State) badges() []badge {
	var out []badge
	add := func(rank int, style cells.Style, text string) {
		out = append(out, badge{text, style, rank})
	}
	if s.cfg.Top.Host && s.shown != nil {
		for _, text := range machine(&s.shown.Host) {
			add(rankMachine, cells.Faint, text)
		}
	}
	if s.shown != nil && s.shown.Simulated {
		add(rankSource, cells.Banner, " SIMULATED ")
	}
	if !s.past.IsZero() && s.shown != nil {
		add(always, cells.Banner, " PAST "+s.shown.Time.Local().Format("Jan 2 15:04:05")+" ")
	} else if s.paused || s.frozen {
		text := " PAUSED "
		if s.shown != nil { // when what is seen was so
			text = " PAUSED " + s.shown.Time.Local().Format("15:04:05") + " "
		}
		add(always, cells.Banner, text)
	}
	if s.lost != nil {
		text := " NO DATA "
		if s.live != nil {
			text = " NO DATA " + words.Span(s.lost.now.Sub(s.lost.since)) + " "
		}
		add(always, cells.Bad, text)
	}
	if p, ok := s.page.(memoryPage); ok && p.mem.Mark() != "" {
		add(rankSource, cells.Label, p.mem.Mark())
	}
	if s.cfg.Top.ReadOnly {
		add(rankInterval, cells.Faint, "read-only")
	}
	if s.o.Source != "" {
		add(rankSource, cells.Faint, words.Escape(s.o.Source))
	} else if s.shown != nil && s.shown.Source == model.Daemon {
		add(rankSource, cells.Faint, "ttmond")
	}
	add(rankInterval, cells.Faint, s.cfg.Top.Interval.String())
	return out
}

// machine is how busy the host itself is, as far as that is known.
func machine(h *model.Host) (list []string) {
	if v, ok := h.CPU.Get(); ok {
		list = append(list, "CPU "+words.PadLeft(words.CPU(v), 4))
	}
	if v, ok := h.Load.Get(); ok {
		list = append(list, "load "+words.PadLeft(words.Fixed(v, 1), 4))
	}
	if used, ok := h.MemoryUsed.Get(); ok && h.MemoryTotal.Known() {
		list = append(list, "RAM "+words.UsedOf(used, h.MemoryTotal.V))
	}
	return list
}

// summary sums the snapshot up: which host, how many devices in which state,
// DRAM, power.
func (s *State) summary() []badge {
	if s.shown == nil {
		return []badge{{"ttmon top", cells.Strong, rankHost}}
	}
	out := []badge{{words.Escape(s.shown.Host.Name), cells.Strong, rankHost}}
	add := func(rank int, style cells.Style, text string) {
		out = append(out, badge{text, style, rank})
	}
	t := words.TotalsOf(s.shown)
	devices := count(t.Devices, "device", "devices")
	if t.Chips > t.Devices {
		devices += fmt.Sprintf(" (%d chips)", t.Chips)
	}
	add(rankCount, cells.Text, devices)
	if t.Devices == 0 {
		return out
	}
	if t.Devices > 2 && t.Board != "" {
		add(rankBoard, cells.Text, t.Board)
	}
	for _, n := range s.judged.Counts() {
		rank := always
		if n.Level == model.Fine {
			rank = rankOK
		}
		add(rank, cells.Of(n.Level), fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)))
	}
	if t.DRAM.Known() && t.Size > 0 {
		add(rankDRAM, cells.Text, "DRAM "+words.FigureOf(t.DRAM, t.Size))
	}
	if t.Power != words.Nothing {
		add(rankPower, cells.Text, t.Power)
	}
	return out
}
