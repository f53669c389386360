package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendTable appends the default screen of ttmon smi: devices, processes, and
// sentences about what is wrong.
func AppendTable(dst []byte, s *model.Snapshot, o Options) []byte {
	p := &printer{buf: dst, Options: o, clip: true}
	p.head(s)
	p.rule("")
	devices(s, &o).print(p, true)
	p.rule("")
	if len(s.Processes) == 0 {
		p.line(" "+words.Idle(s), faint)
	} else {
		g := processes(s, &o)
		g.print(p, true)
	}
	p.notices(s)
	return p.buf
}

// head is the first line: who speaks, about which host, and when.
func (p *printer) head(s *model.Snapshot) {
	left := "ttmon"
	if p.Version != "" {
		left += " " + p.Version
	}
	left += "   driver " + words.Foreign(s.Host.DriverVersion) + "   host " + words.Escape(s.Host.Name)
	if s.Source == model.Daemon {
		left += "   by ttmond"
	}
	when := s.Time.In(p.zone()).Format("2006-01-02 15:04:05")
	mark := ""
	if s.Simulated {
		mark = "   SIMULATED"
	}
	left = words.Truncate(left, max(0, p.layoutWidth()-len(when)-len(mark)-2))
	p.put(left, strong)
	p.put(mark, warn)
	p.blanks(max(2, p.layoutWidth()-words.Width(left)-len(mark)-len(when)))
	p.line(when, plain)
	if len(s.Devices) >= 8 {
		p.flow(summary(s))
	}
}

// flow prints words on one line, or on as many as it takes.
func (p *printer) flow(parts []string) {
	line := ""
	for _, part := range parts {
		if line != "" && words.Width(line)+3+words.Width(part) > p.layoutWidth() {
			p.line(line, plain)
			line = ""
		}
		if line != "" {
			line += "   "
		}
		line += part
	}
	p.line(line, plain)
}

// summary is the host in a few words, for hosts with many devices.
func summary(s *model.Snapshot) []string {
	t := words.TotalsOf(s)
	parts := []string{fmt.Sprintf("%d devices", len(s.Devices))}
	for _, n := range assess.Of(s).Counts() {
		parts = append(parts, fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)))
	}
	if t.Power != words.Nothing {
		parts = append(parts, t.Power)
	}
	if t.DRAM.Known() {
		parts = append(parts, "DRAM "+words.FigureOf(t.DRAM, t.Size))
	}
	return parts
}

// extraWidth is from where on there are more columns than everybody needs,
// wide from where on limits and units are spelled out.
const (
	extraWidth = 110
	wide       = 130
)

// devices makes the grid of devices. Where all are in trays, the trays' titles name
// their boards.
func devices(s *model.Snapshot, o *Options) *grid {
	g := &grid{ruled: true}
	allTrays := len(s.Devices) > 0 && !slices.ContainsFunc(s.Devices, func(d model.Device) bool { return d.Tray == 0 })
	fill := g.deviceColumns(s, o, !allTrays)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Tray > 0 && (i == 0 || s.Devices[i-1].Tray != d.Tray) {
			title := fmt.Sprintf("tray %d", d.Tray)
			if allTrays {
				title += " · " + boardCell(d).text
			}
			g.rows = append(g.rows, row{title: title})
		}
		r := row{}
		for _, f := range fill {
			r.cells = append(r.cells, f(d))
		}
		r.bar = fullness(&d.Memory)
		g.rows = append(g.rows, r)
		g.rows = append(g.rows, chips(d, g.columns)...)
	}
	return g
}

// deviceColumns adds the columns of devices, and returns what fills each.
func (g *grid) deviceColumns(s *model.Snapshot, o *Options, boards bool) (fill []func(*model.Device) cell) {
	a := assess.Of(s)
	add := func(col column, f func(*model.Device) cell) {
		g.columns = append(g.columns, col)
		fill = append(fill, f)
	}
	some := func(has func(*model.Device) bool) bool {
		for i := range s.Devices {
			if has(&s.Devices[i]) {
				return true
			}
		}
		return false
	}
	large := o.layoutWidth() >= wide
	add(column{head: "#", least: 2, right: true}, func(d *model.Device) cell { return c(strconv.Itoa(d.Index)) })
	if boards {
		add(column{head: "Board", least: 5}, func(d *model.Device) cell { return boardCell(d) })
	}
	add(column{head: "Bus id", least: 12, rank: 45}, func(d *model.Device) cell { return c(d.BusID) })
	add(column{head: "State", least: words.StateWidth}, func(d *model.Device) cell { return stateCell(a, d) })
	add(column{head: "Temp", least: 6, right: true, rank: 3}, func(d *model.Device) cell { return tempCell(a, d, o, large) })
	add(column{head: "Power", least: 9, right: true, rank: 2}, func(d *model.Device) cell { return powerCell(a, d) })
	add(column{head: "Act.", least: 6, right: true, rank: 12}, func(d *model.Device) cell {
		return chipCell(d, d.Activity.Ratio, func(v float64) string { return "~" + words.Percent(v) })
	})
	add(column{head: "AICLK", least: 5, right: true, rank: 55}, func(d *model.Device) cell {
		return chipCell(d, d.AICLK, func(f float64) string {
			if large {
				return words.MHz(f)
			}
			return words.Whole(f)
		})
	})
	bars := !o.Plain && some(func(d *model.Device) bool { return fullness(&d.Memory).ok })
	if bars {
		add(column{bar: true, least: leastBarWidth(o), rank: 50}, func(d *model.Device) cell { return c("") })
	}
	add(column{head: "DRAM", least: words.FigurePairWidth, tight: bars}, func(d *model.Device) cell { return poolCell(&d.Memory, model.DRAM) })
	if some(func(d *model.Device) bool { return d.Memory.Pools[model.L1].Occupied.Known() }) {
		add(column{head: "L1", least: words.FigurePairWidth, rank: 1, tight: true}, func(d *model.Device) cell { return poolCell(&d.Memory, model.L1) })
	} else { // said once, above them all
		add(column{head: l1Buffers, least: words.FigureWidth, rank: 1, tight: true}, func(d *model.Device) cell { return buffersCell(&d.Memory, model.L1) })
	}
	add(column{head: "PCIe", least: 9, rank: 40}, func(d *model.Device) cell { return pcieCell(a, d) })
	extras(add, some, o)
	return fill
}

// l1Buffers heads the L1 where nothing but what buffers asked for is known.
const l1Buffers = "L1 " + words.BuffersOnlyShort

// leastBarWidth keeps extra columns from squeezing the bar.
func leastBarWidth(o *Options) int {
	if o.layoutWidth() < extraWidth {
		return minBar
	}
	return 10
}

// extras are the columns that only wide terminals have room for, the most
// useful first. A column that no device has anything for is left out.
func extras(add func(column, func(*model.Device) cell), any func(func(*model.Device) bool) bool, o *Options) {
	if o.layoutWidth() < extraWidth {
		return
	}
	rank := 100
	number := func(head string, least int, get func(*model.Device) model.Reading[float64], say func(float64) string) {
		if any(func(d *model.Device) bool { return get(d).Known() }) {
			add(column{head: head, least: least, right: true, rank: rank}, func(d *model.Device) cell { return chipCell(d, get(d), say) })
			rank++
		}
	}
	number("Fan", 8, func(d *model.Device) model.Reading[float64] { return d.Fan }, func(v float64) string { return words.Whole(v) + " rpm" })
	if any(func(d *model.Device) bool { return d.PCIe.ToDeviceRate.Known() || d.PCIe.FromDeviceRate.Known() }) {
		add(column{head: "To device   From device", least: 2*words.RateWidth + 2, rank: rank}, func(d *model.Device) cell {
			to := chipCell(d, d.PCIe.ToDeviceRate, words.RateColumn)
			from := chipCell(d, d.PCIe.FromDeviceRate, words.RateColumn)
			return c(words.Pad(to.text, words.RateWidth+2)+from.text, to.style)
		})
		rank++
	}
	if any(func(d *model.Device) bool { return d.Firmware.Bundle.Known() }) {
		add(column{head: "Firmware", least: 8, rank: rank}, func(d *model.Device) cell {
			// Without the release candidate's number, which is 0 on releases.
			cl := textCell(d, d.Firmware.Bundle)
			cl.text = strings.TrimSuffix(cl.text, ".0")
			return cl
		})
		rank++
	}
	number("Volt", 6, func(d *model.Device) model.Reading[float64] { return d.Voltage }, func(v float64) string { return words.Fixed(v, 2) + " V" })
	number("Amps", 5, func(d *model.Device) model.Reading[float64] { return d.Current }, func(v float64) string { return words.Whole(v) + " A" })
	add(column{head: "NUMA", least: 4, right: true, rank: rank}, func(d *model.Device) cell {
		return c(words.Reading(d.NUMANode, strconv.Itoa))
	})
	rank++
	add(column{head: "Serial", least: 16, rank: rank}, func(d *model.Device) cell { return textCell(d, d.Serial) })
}

// chips are the lines below a board with several chips: only the memory is
// known of each.
func chips(d *model.Device, columns []column) []row {
	if len(d.Chips) < 2 {
		return nil
	}
	var rows []row
	for i := range d.Chips {
		ch := &d.Chips[i]
		branch := "├ "
		if i == len(d.Chips)-1 {
			branch = "└ "
		}
		name := ch.Name
		if name == "" {
			name = strconv.Itoa(i)
		}
		r := row{}
		for _, col := range columns {
			switch col.head {
			case "Board":
				r.cells = append(r.cells, c(branch+words.Escape(name)))
			case "DRAM":
				r.cells = append(r.cells, poolCell(&ch.Memory, model.DRAM))
			case "L1":
				r.cells = append(r.cells, poolCell(&ch.Memory, model.L1))
			case l1Buffers:
				r.cells = append(r.cells, buffersCell(&ch.Memory, model.L1))
			default:
				r.cells = append(r.cells, c(""))
			}
		}
		r.bar = fullness(&ch.Memory)
		rows = append(rows, r)
	}
	return rows
}

// maxTroubles is how many rows of trouble the screen ends with: what is wrong
// with more devices than that is rarely read row by row.
const maxTroubles = 8

// notices ends the screen with what there is to say: a row for each device in
// trouble, and sentences about the rest.
func (p *printer) notices(s *model.Snapshot) {
	troubles, notes := words.Troubles(s), words.Notes(s)
	if len(troubles)+len(notes) > 0 {
		p.newline()
	}
	more := 0
	if len(troubles) > maxTroubles+1 {
		more = len(troubles) - maxTroubles
	}
	for i, text := range words.TroubleLines(troubles[:len(troubles)-more], max(p.Width-1, 0)) {
		p.blanks(1)
		p.line(text, of(troubles[i].Level))
	}
	if more > 0 {
		rest := words.TroubleSummary(troubles[len(troubles)-more:])
		if p.Width > 0 {
			rest = words.Truncate(rest, max(p.Width-len(" and ")-1, 0))
		}
		p.line(" and "+rest, of(troubles[len(troubles)-more].Level))
	}
	for _, n := range notes {
		lines := []string{n.String()}
		if p.Width > 0 {
			lines = words.Wrap(n.String(), p.Width-4)
		}
		for i, l := range lines {
			p.blanks(1)
			if i > 0 {
				p.blanks(2)
			}
			p.line(l, of(n.Level))
		}
	}
}
