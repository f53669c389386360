package top

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/words"
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

func (p *devicePage) entries(s *State, d *model.Device) []widget.Entry {
	var out []widget.Entry
	for _, section := range metric.Sections() {
		list := s.board().Report(section, d)
		if len(list) == 0 {
			continue
		}
		out = append(out, widget.Entry{Heading: string(section)})
		if section == metric.Health {
			out = append(out, s.conditionEntries(d)...)
		}
		for _, v := range list {
			e := widget.Entry{Name: v.Field.Title, Value: v.Full(), Style: cells.OfNote(v.Level)}
			if !v.Known() {
				e.Style = cells.Faint
			}
			out = append(out, e)
		}
		if section == metric.Memory {
			out = append(out, chipEntries(s.shown, d)...)
		}
	}
	return out
}

// conditionEntries say how a device is, and what to do about it.
func (s *State) conditionEntries(d *model.Device) []widget.Entry {
	text, style := s.condition(d)
	out := []widget.Entry{{Name: "State", Value: text, Style: style}}
	for _, c := range s.judged.About(d.Index) {
		out = append(out, widget.Entry{Name: "Condition", Value: words.ConditionLine(s.shown, &c), Style: cells.Of(c.Level)})
		if remedy := words.Remedy(s.shown, &c, []int{d.Index}); remedy != "" {
			out = append(out, widget.Entry{Name: "To Do", Value: remedy})
		}
	}
	if reason := words.StateReason(d); reason != "" {
		out = append(out, widget.Entry{Name: "Reason", Value: reason})
	}
	return out
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
			text += remoteSensors(c)
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

// remoteSensors is what the vendor's exporter read of a chip behind Ethernet.
func remoteSensors(c *model.Chip) (text string) {
	if c.Temperature.Known() {
		text += ", " + metric.Celsius.Format(c.Temperature.V)
	}
	if c.Power.Known() {
		text += ", " + metric.Watts.Format(c.Power.V)
	}
	if text != "" {
		text += " (" + words.Escape(string(c.SensorsFrom)) + ")"
	}
	return text
}
