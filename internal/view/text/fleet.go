package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// AppendFleet draws totals, alerts, and the first rows hosts.
func AppendFleet(dst []byte, f sums.Fleet, now time.Time, rows int) []byte {
	total := f.Total()
	if f.Simulated > 0 {
		dst = fmt.Appendf(dst, "SIMULATED: %s made up by ttmon-sim\n", words.Count(f.Simulated, "host"))
	}
	dst = fmt.Appendf(dst, "%s  %s  %s  hottest %s  %s  busy %s  DRAM %s\n", words.Count(len(f.Hosts), "host"), words.Count(total.Chips.Count(), "device"), stateCounts(total.Chips),
		sums.Celsius(total.Temperature), total.Watts(), sums.BusyText(total.Busy, total.BusyBound), sums.MemoryText(total.Used, total.Size, total.Bound))
	for _, a := range f.Alerts {
		where := a.Hosts[:min(len(a.Hosts), 5)]
		dst = fmt.Appendf(dst, "  alert %s (%s): %d on %s", words.Escape(a.Name), words.Escape(a.Severity), a.Count, words.Escape(strings.Join(where, ", ")))
		if n := len(a.Hosts) - len(where); n > 0 {
			dst = fmt.Appendf(dst, " and %d more", n)
		}
		dst = append(dst, '\n')
	}
	if f.Links != nil {
		for _, line := range f.Links.Trouble(now) {
			dst = fmt.Appendf(dst, "  links: %s\n", line)
		}
	}
	shown := f.Hosts[:min(len(f.Hosts), rows)]
	t := &lines.Table{Indent: 2, Columns: []lines.Column{
		{Head: "HOST", Most: 40}, {Head: "DEVICES"}, {Head: "HOTTEST", Right: true}, {Head: "POWER", Right: true}, {Head: "BUSY", Right: true}, {Head: "DRAM"}, {Rest: true},
	}}
	for i := range shown {
		h := &shown[i]
		t.Add(words.Escape(h.Name), cellsOf(h), sums.Celsius(h.Temperature), h.Watts(), sums.BusyText(h.Busy, h.BusyBound), sums.MemoryText(h.Used, h.Size, h.Bound), hostTrouble(h))
	}
	dst = appendTable(append(dst, '\n'), t)
	if n := len(f.Hosts) - len(shown); n > 0 {
		dst = fmt.Appendf(dst, "  … and %s more, all better than these\n", words.Count(n, "host"))
	}
	return dst
}

// AppendFleetHost draws one host, chip by chip.
func AppendFleetHost(dst []byte, h *sums.Host, now time.Time) []byte {
	dst = fmt.Appendf(dst, "%s  %s  %s  %s  busy %s  DRAM %s\n\n", words.Escape(h.Name), words.Count(h.Chips.Count(), "device"), stateCounts(h.Chips), h.Watts(), sums.BusyText(h.Busy, h.BusyBound),
		sums.MemoryText(h.Used, h.Size, h.Bound))
	t := &lines.Table{Indent: 2, Columns: lines.Heads(">#", "BOARD", "STATE", ">TEMP", ">POWER", ">AICLK", ">BUSY", "DRAM")}
	for _, c := range h.States {
		t.Add(strconv.Itoa(c.Device), words.Escape(c.Board), words.Kind(c.State), sums.Celsius(c.Temperature), sums.Watts(c.Power), sums.Megahertz(c.Clock), sums.BusyText(c.Busy, c.BusyBound), sums.MemoryText(c.Used, c.Size, c.Bound))
	}
	dst = appendTable(dst, t)
	if h.Links != nil && h.Links.Ends > 0 {
		dst = AppendFleetLinks(append(dst, '\n'), h.Links, now, len(h.Links.Links))
	}
	return dst
}

// cellsOf is a cell for each chip, or their number where there are too many.
func cellsOf(h *sums.Host) string {
	if len(h.States) == 0 || len(h.States) > 32 {
		return words.Count(h.Chips.Count(), "device")
	}
	var b strings.Builder
	for _, c := range h.States {
		b.WriteString(words.StateMark(c.State))
	}
	return b.String()
}

// hostTrouble says what is wrong with a host.
func hostTrouble(h *sums.Host) string {
	var list []string
	if h.Level() > model.Fine {
		list = append(list, stateCounts(h.Chips))
	}
	if h.Suspect != nil {
		list = append(list, "likely cause of "+words.Count(h.Suspect.Links, "link")+" down")
	}
	if h.Alerts > 0 {
		list = append(list, words.Count(h.Alerts, "alert"))
	}
	return strings.Join(list, "  ")
}

// appendTable appends a table that is not cut.
func appendTable(dst []byte, t *lines.Table) []byte {
	p := lines.Printer{Buf: dst}
	p.Table(t)
	return p.Buf
}

func stateCounts(chips assess.Tally) string {
	var list []string
	for _, n := range chips.Counts() {
		list = append(list, fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)))
	}
	return strings.Join(list, ", ")
}
