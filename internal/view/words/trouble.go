package words

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Simulated is what every view says about a host made by ttmon-sim.
const Simulated = "simulated host: these boards do not exist, their numbers are made up by ttmon-sim"

func (l *list) host() {
	s := l.snap
	if s.Simulated {
		l.add(Info, "simulated", model.NoDevice, Simulated)
	}
	if n := len(s.Host.Unbound); n > 0 {
		at := Escape(strings.Join(s.Host.Unbound, ", "))
		text := at + ": " + plural(n, "Tenstorrent device that", "Tenstorrent devices that") + " the driver has not taken: see what it says in dmesg"
		if !s.Host.DriverLoaded {
			text = at + ": " + plural(n, "Tenstorrent device", "Tenstorrent devices") + " without a driver: modprobe tenstorrent"
		}
		l.add(Warning, "unbound", model.NoDevice, text)
	}
	if n := s.Host.HiddenFDs; n > 0 {
		l.add(Info, "hidden", model.NoDevice, "devices are open "+plural(n, "time", "times")+
			" in processes that cannot be seen from here; which ones this driver does not say: run ttmon on the host as root")
	}
	l.strangers()
}

func (l *list) device(d *model.Device) {
	l.state(d)
	l.heat(d)
	if DegradedLink(d) {
		l.add(Warning, "link", d.Index, "running at "+Link(d.PCIe.Gen, d.PCIe.Width)+
			", the slot and the board can do "+Link(linkMax(d)))
	}
	l.memory(d)
	if d.HiddenFDs > 0 && !has(model.UsersHidden, d.Doubts, d.Memory.Doubts) {
		hidden := model.Doubt{Kind: model.UsersHidden, Count: d.HiddenFDs}
		l.add(Info, string(hidden.Kind), d.Index, DoubtAndCure(hidden, l.snap.Source))
	}
}

// has tells whether a kind of doubt is in any of the lists.
func has(k model.DoubtKind, lists ...[]model.Doubt) bool {
	return slices.ContainsFunc(lists, func(list []model.Doubt) bool {
		return slices.ContainsFunc(list, func(d model.Doubt) bool { return d.Kind == k })
	})
}

func (l *list) state(d *model.Device) {
	reason := StateReason(d)
	or := func(text string) string {
		if reason == "" {
			return text
		}
		return reason
	}
	switch d.State {
	case model.StateOK:
		if reason != "" {
			l.add(Info, string(d.StateReason.Cause), d.Index, "ok "+reason)
		}
	case model.StateHung:
		text := "hung: " + or("the firmware does not answer")
		if age, ok := d.HeartbeatAge.Get(); ok && d.StateReason.Cause != model.HeartbeatStopped {
			text += fmt.Sprintf(", its heartbeat stopped %s ago", Span(seconds(age)))
		}
		l.add(Critical, "hung", d.Index, text)
	case model.StateLost:
		l.add(Critical, "lost", d.Index, "lost: "+or("it is gone from the PCIe bus")+l.lastRead(d))
	case model.StateUnknown:
		l.add(Warning, "unknown", d.Index, "state unknown: "+or("not one vital sign can be read"))
	case model.StateResetting:
		l.add(Warning, "resetting", d.Index, "resetting: "+or("values come back when the reset is over")+l.lastRead(d))
	}
}

// lastRead says since when a device has given no values, if it ever gave one
// to this process.
func (l *list) lastRead(d *model.Device) string {
	age := l.snap.Time.Sub(d.ReadAt)
	if d.ReadAt.IsZero() || age < 2*time.Second {
		return ""
	}
	return fmt.Sprintf(", last read %s ago", Span(age))
}

func (l *list) heat(d *model.Device) {
	t, limit := d.Temperature, d.TemperatureLimit
	if t.Known() && limit.Known() && t.V >= limit.V {
		l.add(Warning, "hot", d.Index, fmt.Sprintf("%s, throttling begins at %s",
			Temperature(t.V, Celsius), Temperature(limit.V, Celsius)))
	}
	if n, ok := d.ThermalTrips.Get(); ok && n > 0 {
		l.add(Warning, "thermal_trips", d.Index, "shut down by overheating "+plural(int(n), "time", "times")+" since power-on")
	}
}

// DegradedLink tells whether the PCIe link is slower or narrower than both
// ends can do, and means it. Wormhole firmware 19.8 drops an idle link to Gen1
// by design (19.9 does not any more): that is not a fault.
func DegradedLink(d *model.Device) bool {
	if !d.PCIe.Degraded.Known() || !d.PCIe.Degraded.V {
		return false
	}
	idleGen1 := d.Arch == model.Wormhole && d.PCIe.Gen.Known() && d.PCIe.Gen.V == 1 &&
		d.PCIe.Width.Known() && d.PCIe.Width.V == widest(d) && strings.HasPrefix(d.Firmware.Bundle.V, "19.8.")
	return !idleGen1
}

func widest(d *model.Device) int {
	_, width := linkMax(d)
	return width.V
}

// linkMax is the most that both the slot and the board can do. What only one
// of them tells is taken from that one.
func linkMax(d *model.Device) (gen, width model.Reading[int]) {
	return lower(d.PCIe.GenMax, d.PCIe.SlotGenMax), lower(d.PCIe.WidthMax, d.PCIe.SlotWidthMax)
}

func lower(a, b model.Reading[int]) model.Reading[int] {
	if !a.Known() || b.Known() && b.V < a.V {
		return b
	}
	return a
}

// Link says a PCIe link: "Gen4 x16".
func Link(gen, width model.Reading[int]) string {
	var parts []string
	if g, ok := gen.Get(); ok {
		parts = append(parts, fmt.Sprintf("Gen%d", g))
	}
	if w, ok := width.Get(); ok {
		parts = append(parts, fmt.Sprintf("x%d", w))
	}
	return strings.Join(parts, " ")
}

// mixedFirmware says when devices of one kind run different bundles.
func (l *list) mixedFirmware() {
	type kind struct{ board, bundle string }
	byKind := map[string][]kind{}
	at := map[kind][]int{}
	for i := range l.snap.Devices {
		d := &l.snap.Devices[i]
		if !d.Board.Known() || !d.Firmware.Bundle.Known() {
			continue
		}
		k := kind{d.Board.V, d.Firmware.Bundle.V}
		if at[k] == nil {
			byKind[k.board] = append(byKind[k.board], k)
		}
		at[k] = append(at[k], d.Index)
	}
	for i := range l.snap.Devices { // in the order of the devices, not of the map
		board := l.snap.Devices[i].Board.V
		kinds := byKind[board]
		delete(byKind, board)
		if len(kinds) < 2 {
			continue
		}
		var parts []string
		for _, k := range kinds {
			parts = append(parts, Escape(k.bundle)+" on "+Ranges(at[k]))
		}
		l.add(Info, "firmware", model.NoDevice, "the "+Escape(board)+" devices run different firmware: "+strings.Join(parts, "; "))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
