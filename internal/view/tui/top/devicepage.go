package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/view/words"
)

// devicePage is everything known about one device, and why the rest is not.
type devicePage struct {
	sheet widget.Sheet
	bus   string
}

func (p *devicePage) keys() []binding {
	step := func(by int) func(s *State) []tui.Effect {
		return func(s *State) []tui.Effect {
			list := s.dev.list(s)
			if i := slices.IndexFunc(list, func(d *model.Device) bool { return d.BusID == p.bus }); i >= 0 && i+by >= 0 && i+by < len(list) {
				p.bus, s.dev.bus = list[i+by].BusID, list[i+by].BusID
			}
			return nil
		}
	}
	return []binding{
		{keys: []tui.Key{"right", "l", "n"}, foot: "Next", help: "next device", do: step(1)},
		{keys: []tui.Key{"left", "h", "b"}, foot: "Previous", help: "previous device", do: step(-1)},
		{keys: []tui.Key{"m"}, foot: "Memory", help: "its memory, and who holds it", do: func(s *State) []tui.Effect {
			s.dev.bus = p.bus
			return s.openMemory()
		}},
	}
}

func (p *devicePage) key(_ *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		p.sheet.Move(m)
	}
	return nil
}

func (p *devicePage) draw(s *State, area cells.Area) {
	head, body := area.Top(1)
	i := slices.IndexFunc(s.shown.Devices, func(d model.Device) bool { return d.BusID == p.bus })
	if i < 0 {
		head.Put(1, 0, "Device "+words.Escape(p.bus)+" is gone.", cells.Bad)
		return
	}
	d := &s.shown.Devices[i]
	x := head.Put(1, 0, fmt.Sprintf("Device %d  %s  %s", d.Index, name(d), words.Escape(d.BusID)), cells.Strong)
	text, style := s.condition(d)
	head.Put(x+2, 0, text, style)
	body = s.drawDeviceCharts(body, d)
	p.sheet.Draw(&s.hits, body, p.entries(s, d))
}

// devicePageSections are the parts of the table of metrics by their first word.
var devicePageSections = []struct {
	title    string
	prefixes []string
}{
	{"State", []string{"state", "heartbeat", "thermal", "processes", "activity"}},
	{"Power, temperature, clocks", []string{"temperature.asic", "power", "voltage", "current", "clocks.", "fan.speed"}},
	{onChipTitle, onChipPrefixes},
	{"Memory", []string{"memory", "l1", "l1_small", "trace", "cb", "kernel"}},
	{"PCIe", []string{"pcie", "numa", "cpu.affinity"}},
	{"Identity", []string{"board", "serial", "uuid", "arch", "device.path", "pci.bus_id"}},
	{"Firmware", []string{"fw."}},
}

// onChipPrefixes are the fields that only the firmware knows.
var onChipPrefixes = []string{
	"firmware.state", "power.draw.board", "power.draw.memory", "temperature.board", "temperature.regulator", "temperature.memory", "gddr.",
	"fan.duty", "clocks.reason", "clocks.throttled", "clocks.host", "throttle.", "dispatch.", "ethernet.",
}

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return name == p || strings.HasPrefix(name, strings.TrimSuffix(p, ".")+".")
	})
}

// onChipTitle heads what ttmond reads of the chip itself.
const onChipTitle = "Firmware telemetry"

func (p *devicePage) entries(s *State, d *model.Device) []widget.Entry {
	fields := metric.Devices()
	var out []widget.Entry
	for _, sec := range devicePageSections {
		out = append(out, widget.Entry{Heading: sec.title})
		if sec.title == onChipTitle && d.Telemetry.State == model.TelemetryOff {
			out = append(out, widget.Entry{Name: "firmware.state", Value: words.Telemetry(&d.Telemetry), Style: cells.Faint})
			continue
		}
		for i := range fields {
			f := &fields[i]
			if f.Foreign || !begins(f.Name, sec.prefixes) || sec.title != onChipTitle && begins(f.Name, onChipPrefixes) {
				continue
			}
			if e, ok := s.fieldEntry(f, d); ok {
				out = append(out, e)
			}
		}
		if sec.title == "Memory" {
			out = append(out, chipEntries(s.shown, d)...)
		}
	}
	return out
}

// fieldEntry is a metric of a device with its unit, or why it is missing.
func (s *State) fieldEntry(f *metric.Device, d *model.Device) (widget.Entry, bool) {
	v := f.Get(s.shown, d)
	e := widget.Entry{Name: f.Name}
	switch {
	case strings.HasSuffix(f.Name, ".bound"): // said by the mark of the figure
		return e, false
	case strings.HasSuffix(f.Name, ".occupied") && !v.Known(): // hardly anybody has it
		return e, false
	case v.Known() && v.Text == "" && f.Kind == metric.Text:
		return e, false
	case !v.Known() && f.Kind == metric.Text && v.Why == "" && v.Status == model.Absent:
		return e, false
	case !v.Known():
		e.Value, e.Style = words.Missing(v.Status), cells.Faint
		if v.Why != "" {
			e.Value += ": " + words.Escape(v.Why)
		}
	case f.Unit == "C":
		e.Value = words.Temperature(v.Num, s.scale())
	case f.Unit == "MiB":
		e.Value = words.Mark(v.Bound) + words.Bytes(uint64(max(v.Num, 0)))
	case f.Unit == "MiB/s":
		e.Value = words.Rate(v.Num)
	case f.Unit == "B":
		e.Value = words.Bytes(uint64(max(v.Num, 0)))
	default:
		e.Value = strings.TrimSpace(words.Escape(f.Format(v)) + " " + f.Unit)
	}
	if v.Nominal && v.Known() {
		e.Value += "  (nominal, from the board catalogue)"
	}
	return e, true
}

func chipEntries(snap *model.Snapshot, d *model.Device) []widget.Entry {
	var out []widget.Entry
	for i := range d.Chips {
		c := &d.Chips[i]
		title := "chip " + strconv.Itoa(i)
		if c.Name != "" {
			title = "chip " + words.Escape(c.Name)
		}
		text := "DRAM " + used(&c.Memory, model.DRAM) + "  L1 " + used(&c.Memory, model.L1) + "  id " + words.Reading(c.ID, func(v uint64) string { return strconv.FormatUint(v, 10) })
		if c.Remote {
			text += ", remote"
		}
		out = append(out, widget.Entry{Name: title, Value: text})
		if c.Memory.CB != "" && c.Memory.Pools[model.CB].Used.Known() {
			out = append(out, widget.Entry{Name: "  its CB", Value: words.CBMeaning(c.Memory.CB), Style: cells.Faint})
		}
		for _, why := range words.Reasons(c.Memory.Tracking, c.Memory.Doubts, snap.Source) {
			out = append(out, widget.Entry{Value: why, Style: cells.Faint})
		}
	}
	return out
}
