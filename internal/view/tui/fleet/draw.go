package fleet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Columns beside the name of a host.
const (
	cellColumn   = 32
	narrowCells  = 16
	degreeColumn = 8
	powerColumn  = 9
	busyColumn   = 8
	memoryColumn = 24
	shareColumn  = 7
	maxName      = 30
	wide         = 110 // from here on there is room for all of memory
)

// alerts are those that there is room for.
func (s *Screen) alerts() []sums.Alert {
	if s.fleet == nil {
		return nil
	}
	return s.fleet.Alerts[:min(len(s.fleet.Alerts), max(s.h/5, 1))]
}

// linkTrouble says what is wrong with links between hosts, in the lines that there
// is room for.
func (s *Screen) linkTrouble() []string {
	if s.fleet == nil || s.fleet.Links == nil {
		return nil
	}
	lines := s.fleet.Links.Trouble(s.at)
	most := max(s.h/5, 1)
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most-1], lines[most-1]+fmt.Sprintf("; and %d more: ttmon fleet --links", n))
	}
	return lines
}

// head is how many rows stand above the hosts.
func (s *Screen) head() int { return 2 + len(s.alerts()) + len(s.linkTrouble()) }

// drawFleet draws totals, alerts and hosts.
func (s *Screen) drawFleet(area cells.Area) {
	title, rest := area.Top(1)
	s.drawTitle(title)
	if s.fleet == nil {
		if s.err != "" {
			rest.Put(1, 1, words.Truncate(s.err, rest.W-2), cells.Bad)
		} else {
			rest.Put(1, 1, "Asking "+words.Escape(s.o.Engine)+" …", cells.Strong)
		}
		return
	}
	shown := s.alerts()
	rows, rest := rest.Top(len(shown))
	for y := range shown {
		drawAlert(rows.Sub(0, y, rows.W, 1), &shown[y])
	}
	if n := len(s.fleet.Alerts) - len(shown); n > 0 {
		rows.PutRight(rows.W-1, len(shown)-1, fmt.Sprintf(" and %d alerts more", n), cells.Faint)
	}
	rows, rest = rest.Top(len(s.linkTrouble()))
	for y, line := range s.linkTrouble() {
		rows.Put(1, y, words.Truncate("Links: "+line, rows.W-2), cells.Bad)
	}
	head, body := rest.Top(1)
	name := s.nameWidth()
	s.drawHeading(head, name)
	if len(s.hosts) == 0 {
		body.Put(1, 0, s.whyEmpty(), cells.Strong)
		return
	}
	s.list.Draw(&s.Hits, body, cells.Selected, func(i int, row cells.Area) { s.drawRow(row, &s.hosts[i], name) },
		func(int) []tui.Effect { s.remember(); return nil })
}

// whyEmpty says why there is no host in the list.
func (s *Screen) whyEmpty() string {
	switch {
	case s.filter != "":
		return "No host has " + strconv.Quote(s.filter) + " in its name. Esc shows all."
	case s.bad:
		return "No host is in trouble. Esc shows all."
	}
	return "There is no host."
}

func (s *Screen) nameWidth() int {
	w := 12
	for i := range s.hosts {
		w = max(w, words.Width(s.hosts[i].Name))
	}
	most := maxName
	if s.w < wide {
		most = 18
	}
	return min(w, most)
}

func (s *Screen) drawTitle(row cells.Area) {
	right := words.Escape(s.o.Engine) + "  " + s.o.Interval.String() + " "
	row.PutRight(row.W, 0, right, cells.Faint)
	left := row.Sub(0, 0, max(row.W-words.Width(right)-1, 0), 1)
	x := left.Put(1, 0, "Fleet", cells.Strong) + 2
	if s.fleet == nil {
		return
	}
	if n := s.fleet.Simulated; n > 0 {
		x = left.Put(x, 0, fmt.Sprintf(" SIMULATED %d ", n), cells.Banner) + 1
	}
	if s.err != "" {
		left.Put(x, 0, words.Truncate("as of "+s.at.Local().Format("15:04:05")+": "+s.err, left.W-x), cells.Bad)
		return
	}
	total := s.fleet.Total()
	x = left.Put(x, 0, words.Count(len(s.fleet.Hosts), "host"), cells.Text) + 2
	x = left.Put(x, 0, words.Count(total.Chips.Count(), "device"), cells.Text) + 2
	for _, n := range total.Chips.Counts() {
		x = left.Put(x, 0, fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)), cells.Of(n.Level)) + 2
	}
	for _, part := range []string{sums.Celsius(total.Temperature), total.Watts(), "busy " + sums.BusyText(total.Busy, total.BusyBound), "DRAM " + sums.MemoryText(total.Used, total.Size, total.Bound)} {
		if x+words.Width(part) > left.W {
			return
		}
		x = left.Put(x, 0, part, cells.Text) + 2
	}
}

func drawAlert(row cells.Area, a *sums.Alert) {
	style := cells.OfNote(words.AlertLevel(a.Severity))
	x := row.Put(1, 0, words.Escape(a.Name), style) + 1
	x = row.Put(x, 0, "×"+strconv.Itoa(a.Count), style) + 2
	row.Put(x, 0, words.Truncate(words.Escape(strings.Join(a.Hosts, ", ")), row.W-x-20), cells.Text)
}

func (s *Screen) drawHeading(row cells.Area, name int) {
	row.Fill(' ', cells.Heading)
	style := func(o order) cells.Style {
		if s.order == o {
			return cells.Sorted
		}
		return cells.Heading
	}
	title := "HOST"
	switch {
	case s.filter != "":
		title += " /" + s.filter
	case s.bad:
		title += " !"
	}
	row.Put(1, 0, words.Truncate(title, name), style(byName))
	x := 1 + name + 1
	row.Put(x, 0, "DEVICES", style(byTrouble))
	x += s.cellWidth() + degreeColumn
	row.PutRight(x, 0, "HOTTEST", style(byTemperature))
	x += powerColumn
	row.PutRight(x, 0, "POWER", style(byPower))
	x += busyColumn
	row.PutRight(x, 0, "BUSY", style(byBusy))
	x += s.memoryWidth()
	row.PutRight(x, 0, "DRAM", style(byMemory))
	row.Put(x+2, 0, "TROUBLE", style(byTrouble))
}

func (s *Screen) cellWidth() int {
	if s.w < wide {
		return narrowCells
	}
	return cellColumn
}

func (s *Screen) memoryWidth() int {
	if s.w < wide {
		return shareColumn
	}
	return memoryColumn
}

func (s *Screen) drawRow(row cells.Area, h *sums.Host, name int) {
	style := cells.OfNote(h.Level())
	row.Put(1, 0, words.Truncate(words.Escape(h.Name), name), style)
	x := 1 + name + 1
	s.drawCells(row.Sub(x, 0, s.cellWidth(), 1), h)
	x += s.cellWidth() + degreeColumn
	row.PutRight(x, 0, sums.Celsius(h.Temperature), cells.Text)
	x += powerColumn
	row.PutRight(x, 0, h.Watts(), cells.Text)
	x += busyColumn
	row.PutRight(x, 0, sums.BusyText(h.Busy, h.BusyBound), cells.Text)
	x += s.memoryWidth()
	row.PutRight(x, 0, s.memory(h), cells.Text)
	x += 2
	for _, n := range h.Chips.Counts() {
		if n.Level > model.Fine {
			x = row.Put(x, 0, fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)), cells.Of(n.Level)) + 1
		}
	}
	if h.Alerts > 0 {
		row.Put(x, 0, words.Count(h.Alerts, "alert"), cells.Warn)
	}
}

func (s *Screen) memory(h *sums.Host) string {
	if s.w >= wide {
		return sums.MemoryText(h.Used, h.Size, h.Bound)
	}
	if math.IsNaN(h.Used) || math.IsNaN(h.Size) || h.Size <= 0 {
		return words.Nothing
	}
	return words.Mark(h.Bound) + words.Percent(h.Used/h.Size)
}

// drawCells draws a cell for each chip, or several chips in one where there
// are more than cells: a cell then shows the worst of them.
func (s *Screen) drawCells(row cells.Area, h *sums.Host) {
	list, known := s.chips[h.Name]
	if !known {
		row.Put(0, 0, words.Count(h.Chips.Count(), "device"), cells.Faint)
		return
	}
	per := (len(list) + row.W - 1) / row.W
	for i := 0; i < len(list); i += max(per, 1) {
		worst := slices.MinFunc(list[i:min(i+max(per, 1), len(list))], func(a, b sums.Chip) int { return assess.CompareKinds(a.State, b.State) }).State
		row.Put(i/max(per, 1), 0, words.StateMark(worst), cells.Of(assess.LevelOf(worst)))
	}
}

// drawHost draws one host, chip by chip.
func (s *Screen) drawHost(area cells.Area) {
	title, rest := area.Top(1)
	x := title.Put(1, 0, words.Escape(s.open), cells.Strong) + 2
	if s.err != "" {
		title.Put(x, 0, words.Truncate(s.err, title.W-x), cells.Bad)
	}
	if s.one == nil {
		if s.err == "" {
			rest.Put(1, 0, "Asking "+words.Escape(s.o.Engine)+" …", cells.Strong)
		}
		return
	}
	if s.err == "" {
		title.Put(x, 0, fmt.Sprintf("%s  %s  busy %s  DRAM %s", words.Count(s.one.Chips.Count(), "device"), s.one.Watts(), sums.BusyText(s.one.Busy, s.one.BusyBound), sums.MemoryText(s.one.Used, s.one.Size, s.one.Bound)), cells.Text)
	}
	alerts := s.alertsOf(s.open)
	for y, a := range alerts {
		drawAlert(rest.Sub(0, y, rest.W, 1), &a)
	}
	_, rest = rest.Top(len(alerts))
	rest = s.drawLinks(rest)
	head, body := rest.Top(1)
	head.Fill(' ', cells.Heading)
	head.Put(1, 0, fmt.Sprintf("%3s  %-14s %-10s %8s %9s %9s %7s  %s", "#", "BOARD", "STATE", "TEMP", "POWER", "AICLK", "BUSY", "DRAM"), cells.Heading)
	s.rows.N = len(s.one.States)
	s.rows.Draw(&s.Hits, body, cells.Selected, func(i int, row cells.Area) {
		c := &s.one.States[i]
		at := row.Put(1, 0, fmt.Sprintf("%3d  %s ", c.Device, words.Fit(words.Escape(c.Board), 14)), cells.Text)
		row.Put(at, 0, words.Kind(c.State), cells.Of(assess.LevelOf(c.State)))
		row.PutRight(at+19, 0, sums.Celsius(c.Temperature), cells.Text)
		row.PutRight(at+29, 0, sums.Watts(c.Power), cells.Text)
		row.PutRight(at+39, 0, sums.Megahertz(c.Clock), cells.Text)
		row.PutRight(at+47, 0, sums.BusyText(c.Busy, c.BusyBound), cells.Text)
		row.Put(at+49, 0, sums.MemoryText(c.Used, c.Size, c.Bound), cells.Text)
	}, func(int) []tui.Effect { return nil })
}

// drawLinks draws the links of the open host to others above its devices: all of
// them where there is room, and otherwise those that are down. It returns what is
// left.
func (s *Screen) drawLinks(area cells.Area) cells.Area {
	l := s.one.Links
	if l == nil || l.Ends == 0 {
		return area
	}
	lines := []string{l.Summary()}
	styles := []cells.Style{cells.Strong}
	for i := range l.Links {
		a, b, verdict := &l.Links[i].Ends[0], &l.Links[i].Ends[1], words.LinkVerdict(&l.Verdicts[i])
		if b.Host == s.open && a.Host != s.open {
			a, b = b, a
		}
		line := fmt.Sprintf("  device %d channel %d %s ↔ %s %s", a.Device, a.Channel, words.EndReport(a.Report), words.EndReport(b.Report), words.HostLinkEnd(b))
		style := cells.Text
		if l.Verdicts[i].Down {
			line, style = line+"  "+verdict, cells.Bad
		}
		lines, styles = append(lines, line), append(styles, style)
	}
	n := min(len(lines), max(area.H/3, 1))
	rows, rest := area.Top(n)
	for y := range n {
		rows.Put(1, y, words.Truncate(lines[y], rows.W-2), styles[y])
	}
	if left := len(lines) - n; left > 0 {
		rows.PutRight(rows.W-1, n-1, fmt.Sprintf(" and %d more: ttmon fleet --links %s", left, words.Escape(s.open)), cells.Faint)
	}
	return rest
}

// alertsOf are the alerts that fire on a host.
func (s *Screen) alertsOf(host string) (list []sums.Alert) {
	if s.fleet == nil {
		return nil
	}
	for _, a := range s.fleet.Alerts {
		if n := a.PerHost[host]; n > 0 && len(list) < max(s.h/5, 1) {
			list = append(list, sums.Alert{Name: a.Name, Severity: a.Severity, Count: n})
		}
	}
	return list
}
