// Package selection chooses devices of a snapshot by the names that -i takes.
package selection

import (
	"errors"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Selection is what -i chose: devices by index, bus id, serial number, ASIC id or
// node. Empty means all.
type Selection []string

// Parse reads what was given with -i, once or again, with commas. A
// flag that was given must name something: a script's empty variable is not
// to mean all devices.
func Parse(given []string) (Selection, error) {
	var list Selection
	for _, s := range given {
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	if len(given) > 0 && len(list) == 0 {
		return nil, exit.Usage("-i names no device")
	}
	return list, nil
}

// ErrNoDevice is why From fails, with the name that fits none.
var ErrNoDevice = errors.New("no device")

// From returns the part of a snapshot that was chosen. A name that fits no
// device is an error; one that fits several (a board's serial number) is all of
// them.
func (sel Selection) From(s *model.Snapshot) (*model.Snapshot, error) {
	if len(sel) == 0 {
		return s, nil
	}
	chosen := map[int]bool{}
	for _, name := range sel {
		found := false
		for i := range s.Devices {
			if d := &s.Devices[i]; d.Named(name) {
				chosen[d.Index], found = true, true
			}
		}
		if !found {
			return nil, exit.Usage("%w %q%s", ErrNoDevice, name, nearestDevice(s, name))
		}
	}
	return part(s, chosen), nil
}

// Present is From without errors: what is gone is not there.
func (sel Selection) Present(s *model.Snapshot) *model.Snapshot {
	chosen := map[int]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		chosen[d.Index] = slices.ContainsFunc(sel, d.Named)
	}
	return part(s, chosen)
}

// part is the snapshot of some devices and of their users.
func part(s *model.Snapshot, chosen map[int]bool) *model.Snapshot {
	part := *s
	part.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d model.Device) bool { return !chosen[d.Index] })
	part.Others += len(s.Devices) - len(part.Devices)
	part.Processes = nil
	for _, p := range s.Processes {
		p.Devices = slices.DeleteFunc(slices.Clone(p.Devices), func(u model.DeviceUse) bool { return !chosen[u.Device] })
		if len(p.Devices) > 0 {
			part.Processes = append(part.Processes, p)
		}
	}
	part.StaleSlots = slices.DeleteFunc(slices.Clone(s.StaleSlots), func(g model.StaleSlot) bool { return !chosen[g.Device] })
	part.Unmatched = nil
	part.Alerts = slices.DeleteFunc(slices.Clone(s.Alerts), func(x model.Alert) bool {
		return x.BusID != "" && !slices.ContainsFunc(part.Devices, func(d model.Device) bool { return d.BusID == x.BusID })
	})
	return &part
}

// nearestDevice says what could have been meant.
func nearestDevice(s *model.Snapshot, name string) string {
	if len(s.Devices) == 0 {
		return ": this host has no devices"
	}
	var indexes []int
	var known []string
	for i := range s.Devices {
		d := &s.Devices[i]
		indexes = append(indexes, d.Index)
		known = append(known, d.BusID)
		for _, r := range []model.Reading[string]{d.Serial, d.ASICID} {
			if r.Known() {
				known = append(known, r.V)
			}
		}
	}
	if len(name) >= 4 {
		if n := nearest.Word(strings.ToUpper(name), known); n != "" {
			return ": did you mean " + n + "?"
		}
		if n := nearest.Word(strings.ToLower(name), known); n != "" {
			return ": did you mean " + n + "?"
		}
	}
	which := "device "
	if len(indexes) > 1 {
		which = "devices "
	}
	return ": this host has " + which + words.Ranges(indexes) + " (see ttmon smi -L)"
}
