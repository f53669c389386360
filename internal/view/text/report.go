package text

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// A Section is a part of the long report.
type Section string

// The sections, in the order of the report.
const (
	Identity    Section = "IDENTITY"
	Health      Section = "HEALTH"
	Temperature Section = "TEMPERATURE"
	Power       Section = "POWER"
	Clock       Section = "CLOCK"
	Activity    Section = "ACTIVITY"
	Memory      Section = "MEMORY"
	PCIe        Section = "PCIE"
	Firmware    Section = "FIRMWARE"
	PIDs        Section = "PIDS"
)

// Sections lists them all.
func Sections() []Section {
	return []Section{Identity, Health, Temperature, Power, Clock, Activity, Memory, PCIe, Firmware, PIDs}
}

// ParseSection reads the name of a section as people write it, nvidia-smi's
// names for the same things included.
func ParseSection(name string) (Section, bool) {
	name = strings.ToUpper(strings.TrimSpace(name))
	switch name {
	case "UTILIZATION":
		return Activity, true
	case "PERFORMANCE": // in nvidia-smi: the performance state, and what throttles the clocks
		return Clock, true
	case "VOLTAGE", "CURRENT", "FAN":
		return Power, true
	case "PROCESSES":
		return PIDs, true
	}
	s := Section(name)
	return s, slices.Contains(Sections(), s)
}

// parts are the parts of a device's sheet that a section of the report has.
var parts = map[Section][]string{
	Identity: {"Identity"}, Health: {"Health"}, Temperature: {"Temperature"}, Power: {"Power"}, Clock: {"Clocks"}, Activity: {"Activity"},
	Memory: {"Memory"}, PCIe: {"PCIe"}, Firmware: {"Firmware", "Firmware Telemetry", "GDDR", "Ethernet Links"}, PIDs: {"Processes"},
}

// AppendReport appends the long report: everything that is known, one fact a
// line, and the full reason where something is not. No sections means all.
func AppendReport(dst []byte, s *model.Snapshot, sections []Section, o Options) []byte {
	r := &report{printer: newPrinter(dst, o)}
	r.Line("==============TTMON SMI LOG==============", cells.Faint)
	r.Newline()
	r.fact(0, "Timestamp", s.Time.In(o.zone()).Format("Mon Jan _2 15:04:05 2006"))
	r.fact(0, "Host", words.Escape(s.Host.Name)+", Linux "+words.Escape(s.Host.Kernel))
	r.fact(0, "Driver Version", facts.Reading(s.Host.DriverVersion, words.Escape))
	r.fact(0, "Source", string(s.Source))
	if s.Simulated {
		r.fact(0, "Simulated", "yes")
	}
	r.fact(0, "Attached Devices", strconv.Itoa(len(s.Devices)+s.Others))
	for i := range s.Devices {
		d := &s.Devices[i]
		r.Newline()
		r.Line("Device "+d.BusID, cells.Strong)
		all := append(facts.Device(s, d).Parts, facts.Users(s, d)...)
		for _, section := range Sections() {
			if len(sections) == 0 || slices.Contains(sections, section) {
				(&sheet.Sheet{Parts: named(all, parts[section])}).Draw(r)
			}
		}
	}
	if len(sections) == 0 || slices.Contains(sections, Memory) {
		for _, p := range facts.Unmatched(s) {
			r.Newline()
			p.Below = false
			(&sheet.Sheet{Parts: []sheet.Part{p}}).Draw(&report{printer: r.printer, outer: true})
		}
	}
	r.notices(s, len(sections) > 0 && !slices.Contains(sections, Memory) && !slices.Contains(sections, PIDs))
	return r.Buf
}

// named are the parts with some titles, and those below them.
func named(all []sheet.Part, titles []string) (list []sheet.Part) {
	in := false
	for _, p := range all {
		if !p.Below {
			in = slices.Contains(titles, p.Title)
		}
		if in {
			list = append(list, p)
		}
	}
	return list
}

// report is the medium of the long report: nvidia-smi's, a fact a line.
type report struct {
	*printer
	outer bool // its parts belong to no device
	depth int  // of the part that is printed
}

// factColumn is where values begin.
const factColumn = 42

// fact prints one line: a name and a value, at a depth.
func (r *report) fact(depth int, name, value string) {
	r.Line(words.Pad(strings.Repeat("    ", depth)+name, factColumn)+": "+value, cells.Text)
}

// Head prints nothing: a device has a line of its own.
func (r *report) Head(*sheet.Sheet) {}

// Begin prints the title of a part.
func (r *report) Begin(p *sheet.Part) {
	switch r.depth = 1; {
	case p.Below:
		r.depth = 2
	case r.outer:
		r.depth = 0
	}
	r.Line(strings.Repeat("    ", r.depth)+p.Title, cells.Strong)
}

// End prints nothing.
func (r *report) End(*sheet.Part) {}

// Pairs prints a line for each fact.
func (r *report) Pairs(list []sheet.Pair) {
	for i := range list {
		v := list[i].Value
		if v.Time != nil {
			v.Text = facts.Clock(v.Time.In(r.o.zone()))
		}
		r.fact(r.depth+1, list[i].Name, v.Text)
	}
}

// Table prints a table.
func (r *report) Table(t *sheet.Table) { r.printer.Table(t.Lines()) }

// Map prints a map.
func (r *report) Map(m *sheet.Map) { r.Lines(m.Line(r.LayoutWidth())) }

// Notes prints a line for each sentence.
func (r *report) Notes(list []sheet.Note) {
	for _, n := range list {
		r.Line(strings.Repeat("    ", r.depth+1)+n.Text, cells.Text)
	}
}
