package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Draw implements tui.App.
func (s *State) Draw(g *cells.Grid) {
	s.hits.Reset()
	title, rest := g.Area().Top(1)
	rest, footer := rest.Bottom(1)
	s.drawTitle(title)
	if s.page != nil && s.shown != nil {
		s.page.draw(s, rest)
	} else {
		s.drawMain(rest)
	}
	if s.lost != nil && s.page == nil {
		fade(rest)
	}
	s.drawFooter(footer)
	if s.dialog != nil {
		s.hits.Reset()
		s.dialog.draw(s, g.Area())
	}
}

// fade dims what is old; sentences in the colours of health stay as they are.
func fade(a cells.Area) {
	for y := range a.H {
		for x := range a.W {
			switch a.At(x, y).Style {
			case cells.Bad, cells.Warn, cells.Heading, cells.Sorted:
			default:
				a.Paint(x, y, 1, cells.Faint)
			}
		}
	}
}

func (s *State) drawMain(area cells.Area) {
	p := s.plan()
	dev, rest := area.Top(p.devices)
	s.dev.draw(s, dev, p)
	chart, rest := rest.Top(p.charts)
	if p.level == blocks && p.charts > 0 { // the edge below devices is the one above charts
		chart = area.Sub(0, p.devices-1, area.W, p.charts+1)
	}
	s.chart.draw(s, chart)
	area.Sub(0, 0, area.W, p.devices+p.charts).Join()
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

// notice is something to say below the rest. A good one is Fine.
type notice struct {
	text  string
	level model.Level
	// narrow is the text for fewer cells, where that is not its beginning.
	narrow func(width int) string
}

// within is a notice for a width.
func (l *notice) within(width int) string {
	if l.narrow != nil && words.Width(l.text) > width {
		return l.narrow(width)
	}
	return words.Truncate(l.text, width)
}

// notices lists what there is to say, worst first: the source, then the devices.
func (s *State) notices() []notice {
	var out []notice
	if s.lost != nil {
		out = append(out, notice{text: s.outage(), level: model.Critical})
	}
	if s.shown == nil {
		return out
	}
	if s.back != nil && s.shown.Time.Sub(s.back.until) < backFor {
		out = append(out, notice{text: fmt.Sprintf("the source is back after %s without updates", words.Span(s.back.until.Sub(s.back.since))), level: model.Fine})
	}
	if !s.alone.IsZero() {
		out = append(out, notice{text: "ttmond has not answered since " + s.alone.Local().Format("15:04:05") +
			": the host is read directly, and memory of other users may be hidden", level: model.Warning})
	}
	troubles := slices.DeleteFunc(words.Troubles(s.shown), func(t words.Trouble) bool { return !s.chosen(t.Devices) })
	for i, text := range words.TroubleRows(troubles, max(s.w-2, 1)) {
		out = append(out, notice{text: text, level: troubles[i].Level, narrow: func(width int) string { return words.TroubleRows(troubles, width)[i] }})
	}
	for _, n := range words.Notes(s.shown) {
		switch n.Code {
		case "simulated", // the title says it on every page
			string(model.HeartbeatUnseen): // the next sample sees it
			continue
		}
		out = append(out, notice{text: n.String(), level: n.Level})
	}
	return out
}

// chosen reports whether something is about a device that is shown, or about
// the host.
func (s *State) chosen(devices []int) bool {
	return len(devices) == 0 || slices.ContainsFunc(devices, func(index int) bool {
		d := s.shown.Device(index)
		return d != nil && d.AmongNamed(s.cfg.Top.Devices.Only)
	})
}

// backFor is how long the return of the source is worth a line.
const backFor = 10 * time.Second

func (s *State) outage() string {
	if s.live == nil {
		return "no data: " + s.lost.err
	}
	return fmt.Sprintf("no update for %s: %s. Retrying; the data shown is old.", words.Span(s.lost.now.Sub(s.lost.since)), s.lost.err)
}

// drawNotices writes one sentence a row, and in the last one how many more.
func (s *State) drawNotices(area cells.Area, notes []notice) {
	for y := range area.H {
		if y == area.H-1 && len(notes) > area.H {
			more := fmt.Sprintf("  … %d more (press e)", len(notes)-area.H+1)
			x := area.W - words.Width(more)
			area.Put(1, y, notes[y].within(x-2), cells.Of(notes[y].level))
			area.PutRight(area.W, y, more, cells.Faint)
			break
		}
		area.Put(1, y, notes[y].within(area.W-1), cells.Of(notes[y].level))
	}
	s.hits.Add(area, func(m tui.Mouse) []tui.Effect {
		if m.Action == tui.Press {
			s.page = &logPage{}
		}
		return nil
	})
}

// drawFooter writes the keys, or what there is to say about the last one.
func (s *State) drawFooter(row cells.Area) {
	if s.flash.text != "" {
		row.Put(1, 0, words.Truncate(s.flash.text, row.W-2), s.flash.style)
		return
	}
	widget.Footer(&s.hits, row, s.around.Leaves(s.bound(s.footKeys())))
}

// footKeys is the order of the footer: the way through the past, while that is
// shown; F-keys by number; then letters.
func (s *State) footKeys() []binding {
	all := everywhere()
	var past []binding
	if !s.past.IsZero() {
		past = throughPast()
	}
	if s.page != nil {
		all = append(s.page.keys(), all[0], all[len(all)-1], all[2])
		if !s.outermost() {
			back := binding{keys: []tui.Key{"q"}, foot: "Back", do: func(s *State) []tui.Effect { return s.key("q") }}
			all = append([]binding{back}, all...)
		}
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
	return append(append(past, f...), other...)
}
