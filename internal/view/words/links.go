package words

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/mesh"
	"github.com/ttmon/ttmon/internal/model"
)

// Place is a chip in few letters: "10", "0R".
func Place(p model.ChipPlace) string { return strconv.Itoa(p.Device) + Escape(p.Name) }

// Places lists chips: "10, 11R".
func Places(list []model.ChipPlace) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = Place(p)
	}
	return strings.Join(names, ", ")
}

// Edge names what joins two chips: "10 ↔ 11".
func Edge(e *mesh.Edge) string {
	if e.Outside {
		return Place(e.A) + " ↔ another host"
	}
	return Place(e.A) + " ↔ " + Place(e.B)
}

// EdgeDown says which channels of an edge are down, and what is left.
func EdgeDown(e *mesh.Edge) string {
	down := e.Down()
	numbers := make([]string, len(down))
	for i, c := range down {
		numbers[i] = strconv.Itoa(c.A)
	}
	noun := "channel "
	if len(down) > 1 {
		noun = "channels "
	}
	up, _ := e.Up()
	left := fmt.Sprintf("%d of %d left", up, len(e.Channels))
	if up == 0 {
		left = "no link left"
	}
	return noun + strings.Join(numbers, ", ") + " down (" + left + ")"
}

// links says which Ethernet links are down, and what that cuts off.
func (l *list) links() {
	m := mesh.Of(l.snap)
	lost := m.CutOff()
	for i := range m.Edges {
		e := &m.Edges[i]
		if len(e.Down()) == 0 {
			continue
		}
		text := "Ethernet link " + Edge(e) + ": " + EdgeDown(e)
		level := Warning
		if up, _ := e.Up(); up == 0 {
			level = Critical
			if len(lost) > 0 {
				text += "; cut off: " + Places(lost)
			}
		}
		l.add(level, "ethernet", e.A.Device, text)
	}
}

// onChip says what the chip's own table tells of trouble.
func (l *list) onChip(d *model.Device) {
	t := &d.Telemetry
	if t.State == model.TelemetryStalled {
		l.add(Warning, "telemetry_stalled", d.Index, Telemetry(t))
	}
	if by, is := t.Clock.Throttled(); is && (by == model.LimitVoltage || by == model.LimitHost || by == model.LimitOther) { // no condition of its own
		text := "throttled by " + ClockLimit(by)
		if d.AICLK.Known() && d.AICLKMax.Known() {
			text += fmt.Sprintf(": %s of %s", Whole(d.AICLK.V), MHz(d.AICLKMax.V))
		}
		l.add(Warning, "throttled", d.Index, text)
	}
	var failed, broken []string
	for i := range t.Modules {
		m := &t.Modules[i]
		if m.Failed.V || m.Trained.Known() && !m.Trained.V {
			failed = append(failed, strconv.Itoa(m.Index))
		}
		if m.UncorrectedReads.V || m.UncorrectedWrite.V {
			broken = append(broken, strconv.Itoa(m.Index))
		}
	}
	if len(failed) > 0 {
		l.add(Warning, "memory_failed", d.Index, "GDDR not trained, or failed its self-test: module "+strings.Join(failed, ", "))
	}
	if len(broken) > 0 {
		l.add(Warning, "memory_errors", d.Index, "uncorrected GDDR errors since the chip's reset: module "+strings.Join(broken, ", "))
	}
}
