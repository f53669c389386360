package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Draw implements tui.App.
func (s *State) Draw(g *cells.Grid) {
	s.hits.Reset()
	title, rest := g.Area().Top(1)
	rest, footer := rest.Bottom(1)
	s.drawTitle(title)
	if s.page != nil {
		s.page.draw(s, rest)
	} else {
		s.drawMain(rest)
	}
	s.drawFooter(footer)
	if s.dialog != nil {
		s.hits.Reset()
		s.dialog.draw(s, g.Area())
	}
}

func (s *State) drawMain(area cells.Area) {
	p := s.plan()
	dev, rest := area.Top(p.devices)
	s.dev.draw(s, dev, p)
	chart, rest := rest.Top(p.charts)
	s.chart.draw(s, chart)
	notes := s.notices()
	// Notices take rows from the process table alone: nothing else moves.
	room := max(rest.H-4, 0)
	if p.processes == 0 {
		room = rest.H
	}
	rest, bottom := rest.Bottom(min(len(notes), min(room, 3)))
	if p.processes > 0 {
		s.proc.draw(s, rest)
	}
	s.drawNotices(bottom, notes)
}

// line is a notice on the screen.
type line struct {
	text  string
	style cells.Style
}

// notices lists what there is to say, worst first: the source, then the devices.
func (s *State) notices() []line {
	var out []line
	if s.lost != nil {
		out = append(out, line{s.outage(), cells.Bad})
	}
	if s.shown == nil {
		return out
	}
	if s.back != nil && s.shown.Time.Sub(s.back.until) < backFor {
		out = append(out, line{fmt.Sprintf("the source is back after %s without news", words.Span(s.back.until.Sub(s.back.since))), cells.Good})
	}
	if !s.alone.IsZero() {
		out = append(out, line{"ttmond has not answered since " + s.alone.Local().Format("15:04:05") +
			": the host is read directly, and memory of other users may be hidden", cells.Warn})
	}
	for _, n := range words.Notices(s.shown) {
		switch n.Code {
		case "simulated", // the title says it on every page
			string(model.HeartbeatUnseen): // the next sample sees it
			continue
		}
		style := map[words.Level]cells.Style{words.Critical: cells.Bad, words.Warning: cells.Warn}[n.Level]
		out = append(out, line{n.String(), style})
	}
	return out
}

// backFor is how long the return of the source is worth a line.
const backFor = 10 * time.Second

func (s *State) outage() string {
	if s.live == nil {
		return "no data: " + s.lost.err
	}
	return fmt.Sprintf("no news for %s: %s. Asking again; what you see is old.", words.Span(s.lost.now.Sub(s.lost.since)), s.lost.err)
}

// drawNotices writes one sentence a row, and in the last one how many more.
func (s *State) drawNotices(area cells.Area, notes []line) {
	for y := range area.H {
		if y == area.H-1 && len(notes) > area.H {
			more := fmt.Sprintf("  … %d more: e", len(notes)-area.H+1)
			x := area.W - words.Width(more)
			area.Put(1, y, words.Truncate(notes[y].text, x-1), notes[y].style)
			area.PutRight(area.W, y, more, cells.Faint)
			break
		}
		area.Put(1, y, words.Truncate(notes[y].text, area.W-1), notes[y].style)
	}
	s.hits.Add(area, func(m tui.Mouse) []tui.Effect {
		if m.Action == tui.Press {
			s.page = &logPage{}
		}
		return nil
	})
}

// drawTitle writes the totals at the left and the state of affairs at the right.
func (s *State) drawTitle(row cells.Area) {
	right := s.badges()
	x := row.W
	for i := len(right) - 1; i >= 0; i-- {
		x -= words.Width(right[i].text)
		row.Put(x, 0, right[i].text, right[i].style)
		x--
	}
	if s.shown == nil {
		row.Sub(0, 0, x, 1).Put(1, 0, "ttmon top", cells.Strong)
		return
	}
	left := row.Sub(0, 0, x, 1)
	at := left.Put(1, 0, words.Escape(s.shown.Host.Name), cells.Strong) + 2
	for _, l := range totals(s.shown) {
		if at+words.Width(l.text) > left.W {
			break
		}
		at = left.Put(at, 0, l.text, l.style) + 2
	}
}

// badges are what must be seen on every page.
func (s *State) badges() []line {
	var out []line
	if s.shown != nil && s.shown.Simulated {
		out = append(out, line{" SIMULATED ", cells.Banner})
	}
	if !s.past.IsZero() && s.shown != nil {
		out = append(out, line{" PAST " + s.shown.Time.Local().Format("Jan 2 15:04:05") + " ", cells.Banner})
	} else if s.paused || s.frozen {
		out = append(out, line{" PAUSED ", cells.Banner})
	}
	if s.lost != nil {
		out = append(out, line{" NO DATA ", cells.Bad})
	}
	if s.cfg.Top.ReadOnly {
		out = append(out, line{"read-only", cells.Faint})
	}
	if s.o.Source != "" {
		out = append(out, line{words.Escape(s.o.Source), cells.Faint})
	} else if s.shown != nil && s.shown.Source == model.Daemon {
		out = append(out, line{"ttmond", cells.Faint})
	}
	return append(out, line{s.cfg.Top.Interval.String(), cells.Faint}, line{"", cells.Text})
}

// totals sums a snapshot up: how many devices in which state, power, DRAM.
func totals(snap *model.Snapshot) []line {
	n := len(snap.Devices)
	out := []line{{count(n, "device", "devices"), cells.Text}}
	chips := 0
	states := map[model.State]int{}
	var watts float64
	var dram model.Sum
	var total uint64
	powered := 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		chips += len(d.Chips)
		states[d.State]++
		if d.Power.Known() {
			watts += d.Power.V
			powered++
		}
		pool := d.Memory.Pools[model.DRAM]
		dram.Add(pool.Used)
		total += pool.Total.V
	}
	if n == 0 {
		return out
	}
	if chips > n {
		out[0].text += fmt.Sprintf(" (%d chips)", chips)
	}
	for _, st := range model.States() {
		if states[st] > 0 {
			out = append(out, line{fmt.Sprintf("%d %s", states[st], st), stateStyle(st)})
		}
	}
	if powered > 0 {
		text := words.Watts(watts)
		if watts >= 10000 {
			text = words.Fixed(watts/1000, 1) + " kW"
		}
		if powered < n {
			text = "≥" + text
		}
		out = append(out, line{text, cells.Text})
	}
	if held := dram.Bytes(); held.Known() && total > 0 {
		out = append(out, line{"DRAM " + words.FigureOf(held, total), cells.Text})
	}
	return out
}

// drawFooter writes the keys, or what there is to say about the last one.
func (s *State) drawFooter(row cells.Area) {
	if s.flash.text != "" {
		row.Put(1, 0, words.Truncate(s.flash.text, row.W-2), s.flash.style)
		return
	}
	widget.Footer(&s.hits, row, s.bound(s.footKeys()))
}

// footKeys is the order of the footer: F-keys by number, then letters.
func (s *State) footKeys() []binding {
	all := everywhere()
	if s.page != nil {
		back := binding{keys: []tui.Key{"q"}, foot: "Back", do: func(s *State) []tui.Effect { s.page = nil; return nil }}
		all = append(append([]binding{back}, s.page.keys()...), all[0], all[len(all)-1])
	} else {
		all = append(append(append([]binding{}, all[:2]...), onMain()...), all[2:]...)
	}
	var f, other []binding
	for _, b := range all {
		switch {
		case b.foot == "" || b.foot == "Kill" && s.noKill() != "":
		case s.page == nil && strings.HasPrefix(string(b.keys[0]), "f"):
			f = append(f, b)
		default:
			other = append(other, b)
		}
	}
	return append(f, other...)
}
