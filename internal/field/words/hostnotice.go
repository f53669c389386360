package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Simulated is what every view says about a host made by ttmon-sim.
const Simulated = "simulated host: ttmon-sim made up these boards and their numbers"

// MoreCommands is the line below the table of a user who typed ttmon and nothing else.
const MoreCommands = "\n ttmon top: live, with charts. ttmon --help: all commands.\n"

func (l *list) host() {
	s := l.snap
	if s.Simulated {
		l.add(Info, "simulated", model.NoDevice, Simulated)
	}
	if n := s.Host.HiddenFDs; n > 0 {
		l.add(Info, "hidden", model.NoDevice, "devices are open "+plural(n, "time", "times")+
			" in processes that cannot be seen from here; which ones this driver does not say: run ttmon on the host as root")
	}
	l.unmatchedChips()
}

func (l *list) device(d *model.Device) {
	if reason := StateReason(d); reason != "" && d.State == model.StateOK {
		l.add(Info, string(d.StateReason.Cause), d.Index, l.healthy+" "+reason)
	}
	l.memory(d)
	if d.HiddenFDs > 0 && !has(model.UsersHidden, d.Doubts, d.Memory.Doubts) {
		hidden := model.Doubt{Kind: model.UsersHidden, Count: d.HiddenFDs}
		l.add(Info, string(hidden.Kind), d.Index, DoubtAndCure(hidden, l.snap.Source))
	}
}

// has reports whether a kind of doubt is in any of the lists.
func has(k model.DoubtKind, lists ...[]model.Doubt) bool {
	return slices.ContainsFunc(lists, func(list []model.Doubt) bool {
		return slices.ContainsFunc(list, func(d model.Doubt) bool { return d.Kind == k })
	})
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
