package text

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/words"
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

// AppendReport appends the long report: everything that is known, one fact a
// line, and the full reason where something is not. No sections means all.
func AppendReport(dst []byte, s *model.Snapshot, sections []Section, o Options) []byte {
	r := &report{printer: newPrinter(dst, o), snap: s, assessed: assess.Of(s)}
	r.board = metric.Show(s, r.assessed)
	r.Line("==============TTMON SMI LOG==============", cells.Faint)
	r.Newline()
	r.fact(0, "Timestamp", s.Time.In(o.zone()).Format("Mon Jan _2 15:04:05 2006"))
	r.fact(0, "Host", words.Escape(s.Host.Name)+", Linux "+words.Escape(s.Host.Kernel))
	r.fact(0, "Driver Version", say(s.Host.DriverVersion, words.Escape))
	r.fact(0, "Source", string(s.Source))
	if s.Simulated {
		r.fact(0, "Simulated", "yes")
	}
	r.fact(0, "Attached Devices", strconv.Itoa(len(s.Devices)+s.Others))
	for i := range s.Devices {
		d := &s.Devices[i]
		r.Newline()
		r.Line("Device "+d.BusID, cells.Strong)
		for _, section := range Sections() {
			if len(sections) == 0 || slices.Contains(sections, section) {
				r.section(section, d)
			}
		}
	}
	if len(sections) == 0 || slices.Contains(sections, Memory) {
		r.unmatchedChips()
	}
	r.notices(s, len(sections) > 0 && !slices.Contains(sections, Memory) && !slices.Contains(sections, PIDs))
	return r.Buf
}

type report struct {
	*printer
	snap     *model.Snapshot
	assessed *assess.Assessment
	board    metric.Board
}

// factColumn is where values begin.
const factColumn = 42

// fact prints one line: a name and a value, at a depth.
func (r *report) fact(depth int, name, value string) {
	name = words.Pad(strings.Repeat("    ", depth)+name, factColumn)
	r.Write(name, cells.Text)
	r.Write(": ", cells.Text)
	r.Line(value, cells.Text)
}

func (r *report) title(depth int, name string) {
	r.Line(strings.Repeat("    ", depth)+name, cells.Strong)
}

// say formats a reading in full: the value and whether it is nominal, or why it is
// missing.
func say[T any](v model.Reading[T], f func(T) string) string {
	if x, ok := v.Get(); ok {
		if v.Nominal {
			return f(x) + " (nominal)"
		}
		return f(x)
	}
	text := words.Missing(v.Status)
	if v.Status == model.Pending {
		text = "N/A"
	}
	if v.Why != "" {
		text += " (" + words.Escape(v.Why) + ")"
	}
	return text
}

// fieldSections are the parts of package metric's table of fields that make up a
// section of the report. Sections without fields print themselves.
var fieldSections = map[Section][]metric.Section{
	Identity: {metric.Identity}, Temperature: {metric.Thermal}, Power: {metric.Power}, Clock: {metric.Clocks}, Activity: {metric.Activity},
	PCIe: {metric.PCIe}, Firmware: {metric.Firmware},
}

func (r *report) section(section Section, d *model.Device) {
	switch section {
	case Health:
		r.health(d)
	case Memory:
		r.memory(d)
	case PIDs:
		r.pids(d)
	}
	for _, part := range fieldSections[section] {
		r.title(1, string(part))
		r.fields(2, part, d)
	}
	switch section {
	case Clock:
		r.fact(2, "Throttled", words.Throttling(r.assessed, d))
	case PCIe:
		if assess.IdleLink(d) {
			r.fact(2, "Note", "an idle link drops to Gen1 with this firmware")
		}
	case Firmware:
		r.firmwareTelemetry(d)
	}
}

// fields prints a section of package metric's table of fields.
func (r *report) fields(depth int, section metric.Section, d *model.Device) {
	for _, s := range r.board.Report(section, d) {
		r.fact(depth, s.Field.Title, s.Full())
	}
}

// orNA returns s, or "N/A" if it is empty.
func orNA(s string) string {
	if s == "" {
		return "N/A"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
