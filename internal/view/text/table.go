package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendTable appends the default screen of ttmon smi: devices, processes, and
// sentences about what is wrong.
func AppendTable(dst []byte, s *model.Snapshot, o Options) []byte {
	p := newPrinter(dst, o)
	p.Clip = true
	p.head(s)
	p.Rule("")
	p.Table(devices(s, &o))
	p.Rule("")
	if len(s.Processes) == 0 {
		p.Line(" "+words.Idle(s), cells.Faint)
	} else {
		p.Table(processes(s, &o))
		if o.Who {
			p.who(s)
		}
	}
	p.notices(s, false)
	return p.Buf
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
			p.Line("", cells.Text)
			first = false
		}
		p.Line(words.Truncate(" "+strconv.Itoa(x.PID)+" belongs to "+who, p.LayoutWidth()), cells.Text)
	}
}

// head is the first line: who speaks, about which host, and when.
func (p *printer) head(s *model.Snapshot) {
	name, left := "ttmon", "   driver "+words.Foreign(s.Host.DriverVersion)+"   host "+words.Escape(s.Host.Name)
	if s.Source == model.Daemon {
		left += "   by ttmond"
	}
	when := s.Time.In(p.o.zone()).Format("2006-01-02 15:04:05")
	mark := ""
	if s.Simulated {
		mark = "   SIMULATED"
	}
	room := max(0, p.LayoutWidth()-len(when)-len(mark)-2)
	if p.o.Version != "" && len(name)+1+len(p.o.Version)+words.Width(left) <= room { // ttmon version has it, too
		name += " " + p.o.Version
	}
	left = words.Truncate(name+left, room)
	p.Write(left, cells.Strong)
	p.Write(mark, cells.Warn)
	p.Line(words.PadLeft(when, max(len(when)+2, p.LayoutWidth()-words.Width(left)-len(mark))), cells.Text)
	if len(s.Devices) >= 8 {
		p.flow(summary(s))
	}
}

// flow prints words on one line, or on as many as it takes.
func (p *printer) flow(parts []string) {
	line := ""
	for _, part := range parts {
		if line != "" && words.Width(line)+3+words.Width(part) > p.LayoutWidth() {
			p.Line(line, cells.Text)
			line = ""
		}
		if line != "" {
			line += "   "
		}
		line += part
	}
	p.Line(line, cells.Text)
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

// devices makes the table of devices, with a row below each for its chips where it has
// several. Where all are in trays, the trays' titles name their boards.
func devices(s *model.Snapshot, o *Options) *lines.Table {
	allTrays := len(s.Devices) > 0 && !slices.ContainsFunc(s.Devices, func(d model.Device) bool { return d.Tray == 0 })
	t := &deviceTable{Table: &lines.Table{Ruled: true, Indent: 1}, devices: s.Devices, o: o, judged: assess.Of(s)}
	t.board = metric.Show(s, t.judged)
	t.choose(!allTrays)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Tray > 0 && (i == 0 || s.Devices[i-1].Tray != d.Tray) {
			title := fmt.Sprintf("tray %d", d.Tray)
			if allTrays {
				title += " · " + boardCell(d).Text
			}
			t.Rows = append(t.Rows, lines.Row{Title: title})
		}
		t.addRow(func(f *fill) lines.Cell { return f.device(d) })
		for k := range d.Chips {
			if len(d.Chips) > 1 {
				t.addRow(func(f *fill) lines.Cell {
					if f.chip == nil {
						return lines.Cell{}
					}
					return f.chip(d, k)
				})
			}
		}
	}
	return t.Table
}

// deviceTable is the table of devices while its columns are chosen.
type deviceTable struct {
	*lines.Table
	fill    []fill // of each column
	devices []model.Device
	o       *Options
	judged  *assess.Assessment
	board   metric.Board
}

// fill is what stands in a column: of a device and of one of its several chips, of
// which mostly nothing but the memory is known.
type fill struct {
	device func(*model.Device) lines.Cell
	chip   func(d *model.Device, k int) lines.Cell // nil: nothing
}

func (t *deviceTable) add(col lines.Column, f fill) {
	t.Columns = append(t.Columns, col)
	t.fill = append(t.fill, f)
}

func (t *deviceTable) addRow(cell func(*fill) lines.Cell) {
	var r lines.Row
	for i := range t.fill {
		r.Cells = append(r.Cells, cell(&t.fill[i]))
	}
	t.Rows = append(t.Rows, r)
}

// field adds a column for a field of the table of metrics: a minimum width, a
// rank, and which of its texts.
func (t *deviceTable) field(name string, least, rank int, say func(*metric.Shown) string) *lines.Column {
	f := metric.Named(name)
	t.add(lines.Column{Head: f.Head, Least: least, Rank: rank, Right: f.Kind != metric.Text}, fill{device: func(d *model.Device) lines.Cell {
		s := t.board.Value(f, d)
		return valueCell(d, &s, say)
	}})
	return &t.Columns[len(t.Columns)-1]
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
	if t.o.LayoutWidth() >= wide {
		temperature, clock = (*metric.Shown).Of, (*metric.Shown).Text
	}
	t.add(lines.Column{Head: "#", Least: 2, Right: true}, fill{device: func(d *model.Device) lines.Cell { return lines.C(strconv.Itoa(d.Index)) }})
	if boards {
		t.add(lines.Column{Head: "Board", Least: 5}, fill{device: boardCell, chip: chipNameCell})
	}
	bus := 45
	if t.o.Names {
		t.add(lines.Column{Head: "Name", Least: 9}, fill{device: func(d *model.Device) lines.Cell { return lines.C(archName(d.Arch)) }})
		bus = 60 // goes before the bar, which the prototype had
	}
	t.add(lines.Column{Head: "Bus id", Least: 12, Rank: bus}, fill{device: func(d *model.Device) lines.Cell { return lines.C(d.BusID) }})
	t.add(lines.Column{Head: "State", Least: words.StateWidth}, fill{device: func(d *model.Device) lines.Cell { return stateCell(t.judged, d) }})
	// Their widths are for values that are rare: 100 °C, 100/150 W, ~100 %.
	t.field("temperature.asic", 6, 3, temperature).Tight = true
	t.field("power.draw", 9, 2, (*metric.Shown).Of).Tight = true
	if !t.o.Plain && t.o.LayoutWidth() >= wide && t.some(func(d *model.Device) bool { return busyness(d).Bar != nil }) {
		t.add(lines.Column{Least: leastBarWidth(t.o), Rank: 99}, fill{device: busyness}) // that of DRAM takes what room is left
	}
	t.add(lines.Column{Head: metric.Named("busy").Head, Least: 6, Rank: 12, Right: true, Tight: true}, fill{func(d *model.Device) lines.Cell {
		s := t.board.Value(metric.BusyField(d), d)
		return valueCell(d, &s, (*metric.Shown).Text)
	}, chipBusyCell})
	t.field("clocks.ai", 5, 55, clock)
	bars := !t.o.Plain && t.some(func(d *model.Device) bool { return fullness(&d.Memory).Bar != nil })
	if bars {
		t.memory(lines.Column{Bar: true, Least: leastBarWidth(t.o), Rank: 46}, fullness)
	}
	t.memory(lines.Column{Head: "DRAM", Least: words.FigurePairWidth, Tight: bars}, func(m *model.Memory) lines.Cell { return poolCell(m, model.DRAM) })
	if t.some(func(d *model.Device) bool { return d.Memory.Pools[model.L1].Occupied.Known() }) {
		t.memory(lines.Column{Head: "L1", Least: words.FigurePairWidth, Rank: 1, Tight: true}, func(m *model.Memory) lines.Cell { return poolCell(m, model.L1) })
	} else { // said once, above them all
		t.memory(lines.Column{Head: "L1 " + words.BuffersOnlyShort, Least: words.FigureWidth, Rank: 1, Tight: true}, func(m *model.Memory) lines.Cell { return buffersCell(m, model.L1) })
	}
	t.field("pcie.link", 8, 50, linkText) // goes before the bar: a link that is slow is a state
	if t.o.LayoutWidth() >= extraWidth {
		t.extras()
	}
}

// memory adds a column that devices and their chips have.
func (t *deviceTable) memory(col lines.Column, cell func(*model.Memory) lines.Cell) {
	t.add(col, fill{
		func(d *model.Device) lines.Cell { return cell(&d.Memory) },
		func(d *model.Device, k int) lines.Cell { return cell(&d.Chips[k].Memory) },
	})
}

// leastBarWidth keeps other columns from squeezing the bar.
func leastBarWidth(o *Options) int {
	switch w := o.LayoutWidth(); {
	case w >= extraWidth:
		return 10
	case w >= barWidth:
		return 8
	}
	return lines.MinBar
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

// archName is what tt-metal calls a generation of chips.
func archName(a model.Arch) string {
	switch a {
	case model.Wormhole:
		return "Wormhole_B0"
	case model.Blackhole:
		return "Blackhole"
	}
	return words.Nothing
}

// chipNameCell is a chip as a branch of its board.
func chipNameCell(d *model.Device, k int) lines.Cell {
	branch := "├ "
	if k == len(d.Chips)-1 {
		branch = "└ "
	}
	name := d.Chips[k].Name
	if name == "" {
		name = strconv.Itoa(k)
	}
	return lines.C(branch + words.Escape(name))
}

// busyness is the bar of how busy a device is, measured or estimated, if there is one to
// draw.
func busyness(d *model.Device) lines.Cell {
	ratio, bound := d.Work.Busy, d.Work.Bound
	if metric.BusyField(d).As == metric.Estimate {
		ratio, bound = d.Activity.Ratio, model.Unsure
	}
	if !ratio.Known() {
		return lines.Cell{}
	}
	return lines.Cell{Bar: &lines.Bar{Ratio: ratio.V, Bound: bound}}
}

// chipBusyCell is how busy one of a board's chips is. Where nothing is known of
// any of them, the board's own row says so once.
func chipBusyCell(d *model.Device, k int) lines.Cell {
	switch w := &d.Chips[k].Work; {
	case w.Busy.Known():
		return lines.C(words.Busy(w))
	case w.Cause != "" && (d.Work.Busy.Known() || w.Cause == model.WorkSilent):
		return lines.C(words.Busy(w), cells.Faint)
	}
	return lines.Cell{}
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
		p.Newline()
	}
	more := 0
	if len(troubles) > maxTroubles+1 {
		more = len(troubles) - maxTroubles
	}
	for i, list := range words.TroubleLines(troubles[:len(troubles)-more], max(p.Width-1, 0)) {
		for _, text := range list {
			p.Line(" "+text, cells.OfNote(troubles[i].Level))
		}
	}
	if more > 0 {
		rest := words.TroubleSummary(troubles[len(troubles)-more:])
		if p.Width > 0 {
			rest = words.Truncate(rest, max(p.Width-len(" and ")-1, 0))
		}
		p.Line(" and "+rest, cells.OfNote(troubles[len(troubles)-more].Level))
	}
	for _, n := range notes {
		p.Sentence(n.String(), cells.OfNote(n.Level))
	}
}
