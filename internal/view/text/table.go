package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
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
		if o.Who {
			p.who(s)
		}
	}
	p.notices(s, false)
	return p.buf
}

// who says whom to ask about each process, as far as more than the user's name is
// known.
func (p *printer) who(s *model.Snapshot) {
	first := true
	for _, x := range byDevice(s) {
		who := words.Reach(x)
		if who == "" {
			continue
		}
		if first {
			p.line("", plain)
			first = false
		}
		p.line(words.Truncate(" ask about "+strconv.Itoa(x.PID)+": "+who, p.layoutWidth()), plain)
	}
}

// head is the first line: who speaks, about which host, and when.
func (p *printer) head(s *model.Snapshot) {
	name, left := "ttmon", "   driver "+words.Foreign(s.Host.DriverVersion)+"   host "+words.Escape(s.Host.Name)
	if s.Source == model.Daemon {
		left += "   by ttmond"
	}
	when := s.Time.In(p.zone()).Format("2006-01-02 15:04:05")
	mark := ""
	if s.Simulated {
		mark = "   SIMULATED"
	}
	room := max(0, p.layoutWidth()-len(when)-len(mark)-2)
	if p.Version != "" && len(name)+1+len(p.Version)+words.Width(left) <= room { // ttmon version has it, too
		name += " " + p.Version
	}
	left = words.Truncate(name+left, room)
	p.write(left, strong)
	p.write(mark, warn)
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
// wide from where on limits and units are spelled out, barWidth from where on
// the bar of DRAM is wide enough to compare devices by.
const (
	barWidth   = 100
	extraWidth = 110
	wide       = 130
)

// devices makes the grid of devices. Where all are in trays, the trays' titles name
// their boards.
func devices(s *model.Snapshot, o *Options) *grid {
	allTrays := len(s.Devices) > 0 && !slices.ContainsFunc(s.Devices, func(d model.Device) bool { return d.Tray == 0 })
	t := &deviceTable{grid: &grid{ruled: true}, devices: s.Devices, o: o, judged: assess.Of(s)}
	t.board = metric.Show(s, t.judged)
	t.choose(!allTrays)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Tray > 0 && (i == 0 || s.Devices[i-1].Tray != d.Tray) {
			title := fmt.Sprintf("tray %d", d.Tray)
			if allTrays {
				title += " · " + boardCell(d).text
			}
			t.rows = append(t.rows, row{title: title})
		}
		r := row{bar: fullness(&d.Memory)}
		for _, f := range t.fill {
			r.cells = append(r.cells, f(d))
		}
		t.rows = append(t.rows, r)
		t.rows = append(t.rows, chips(d, t.columns)...)
	}
	return t.grid
}

// deviceTable is the grid of devices while its columns are chosen.
type deviceTable struct {
	*grid
	fill    []func(*model.Device) cell // of each column
	devices []model.Device
	o       *Options
	judged  *assess.Assessment
	board   metric.Board
}

func (t *deviceTable) add(col column, fill func(*model.Device) cell) {
	t.columns = append(t.columns, col)
	t.fill = append(t.fill, fill)
}

// field adds a column for a field of the table of metrics: a minimum width, a
// rank, and which of its texts.
func (t *deviceTable) field(name string, least, rank int, say func(*metric.Shown) string) *column {
	f := metric.Named(name)
	t.add(column{head: f.Head, least: least, rank: rank, right: f.Kind != metric.Text}, func(d *model.Device) cell {
		s := t.board.Value(f, d)
		return valueCell(d, &s, say)
	})
	return &t.columns[len(t.columns)-1]
}

// some reports whether any device has something.
func (t *deviceTable) some(has func(*model.Device) bool) bool {
	for i := range t.devices {
		if has(&t.devices[i]) {
			return true
		}
	}
	return false
}

// choose adds the columns of devices.
func (t *deviceTable) choose(boards bool) {
	temperature, clock := (*metric.Shown).Text, (*metric.Shown).Bare
	if t.o.layoutWidth() >= wide {
		temperature, clock = (*metric.Shown).Of, (*metric.Shown).Text
	}
	t.add(column{head: "#", least: 2, right: true}, func(d *model.Device) cell { return c(strconv.Itoa(d.Index)) })
	if boards {
		t.add(column{head: "Board", least: 5}, boardCell)
	}
	t.add(column{head: "Bus id", least: 12, rank: 45}, func(d *model.Device) cell { return c(d.BusID) })
	t.add(column{head: "State", least: words.StateWidth}, func(d *model.Device) cell { return stateCell(t.judged, d) })
	// Their widths are for values that are rare: 100 °C, 100/150 W, ~100 %.
	t.field("temperature.asic", 6, 3, temperature).tight = true
	t.field("power.draw", 9, 2, (*metric.Shown).Of).tight = true
	t.add(column{head: metric.Named("busy").Head, least: 6, rank: 12, right: true, tight: true}, func(d *model.Device) cell {
		s := t.board.Value(metric.BusyField(d), d)
		return valueCell(d, &s, (*metric.Shown).Text)
	})
	t.field("clocks.ai", 5, 55, clock)
	bars := !t.o.Plain && t.some(func(d *model.Device) bool { return fullness(&d.Memory).ok })
	if bars {
		t.add(column{bar: true, least: leastBarWidth(t.o), rank: 46}, func(*model.Device) cell { return c("") })
	}
	t.add(column{head: "DRAM", least: words.FigurePairWidth, tight: bars}, func(d *model.Device) cell { return poolCell(&d.Memory, model.DRAM) })
	if t.some(func(d *model.Device) bool { return d.Memory.Pools[model.L1].Occupied.Known() }) {
		t.add(column{head: "L1", least: words.FigurePairWidth, rank: 1, tight: true}, func(d *model.Device) cell { return poolCell(&d.Memory, model.L1) })
	} else { // said once, above them all
		t.add(column{head: l1Buffers, least: words.FigureWidth, rank: 1, tight: true}, func(d *model.Device) cell { return buffersCell(&d.Memory, model.L1) })
	}
	t.field("pcie.link", 8, 50, linkText) // goes before the bar: a link that is slow is a state
	if t.o.layoutWidth() >= extraWidth {
		t.extras()
	}
}

// l1Buffers heads the L1 where nothing but what buffers asked for is known.
const l1Buffers = "L1 " + words.BuffersOnlyShort

// leastBarWidth keeps other columns from squeezing the bar.
func leastBarWidth(o *Options) int {
	switch w := o.layoutWidth(); {
	case w >= extraWidth:
		return 10
	case w >= barWidth:
		return 8
	}
	return minBar
}

// extras are the columns that only wide terminals have room for, the most
// useful first. A column that no device has anything for is left out.
func (t *deviceTable) extras() {
	rank := 100
	optional := func(name string, least int, say func(*metric.Shown) string) {
		if f := metric.Named(name); t.some(func(d *model.Device) bool { s := t.board.Value(f, d); return s.Known() }) {
			t.field(name, least, rank, say)
			rank++
		}
	}
	optional("fan.speed", 8, (*metric.Shown).Text)
	optional("pcie.rx", words.RateWidth, (*metric.Shown).Text)
	optional("pcie.tx", words.RateWidth, (*metric.Shown).Text)
	// Without the release candidate's number, which is 0 on releases.
	optional("fw.bundle", 8, func(s *metric.Shown) string { return strings.TrimSuffix(s.Text(), ".0") })
	optional("voltage.core", 7, (*metric.Shown).Text)
	optional("current.core", 5, (*metric.Shown).Text)
	optional("numa.node", 4, (*metric.Shown).Text)
	optional("board.serial", 16, (*metric.Shown).Text)
}

// chipBusyCell is how busy one of a board's chips is. Where nothing is known of
// any of them, the board's own row says so once.
func chipBusyCell(d *model.Device, ch *model.Chip) cell {
	switch w := &ch.Work; {
	case w.Busy.Known():
		return c(words.Busy(w))
	case w.Cause != "" && (d.Work.Busy.Known() || w.Cause == model.WorkSilent):
		return c(words.Busy(w), faint)
	}
	return c("")
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
			case metric.Named("busy").Head:
				r.cells = append(r.cells, chipBusyCell(d, ch))
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
// trouble, and sentences about the rest. Where no memory is shown, what a mark on
// its figures means is not said.
func (p *printer) notices(s *model.Snapshot, noMemory bool) {
	troubles, notes := words.Troubles(s), words.Notes(s)
	if noMemory {
		notes = slices.DeleteFunc(notes, func(n words.Notice) bool { return n.Code == words.Unmeasured })
	}
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
