// Package choose tells which devices are meant by the names people give them.
// It stands between the configuration or flags of a screen and the snapshot.
package choose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Device tells whether a device is among those named. No names: all are.
func Device(d *model.Device, names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return Is(d, name) })
}

// Is tells whether a name means a device: its kernel index, bus id (the
// domain and function 0 may be left out), node, serial number or ASIC id.
func Is(d *model.Device, name string) bool {
	if n, err := strconv.Atoi(name); err == nil && len(name) < 4 {
		return d.Index == n
	}
	name = strings.ToLower(name)
	_, short, _ := strings.Cut(d.BusID, ":")
	switch name {
	case d.BusID, d.Path, short, strings.TrimSuffix(d.BusID, ".0"), strings.TrimSuffix(short, ".0"):
		return true
	}
	hex := strings.TrimPrefix(name, "0x")
	return d.Serial.Known() && hex == strings.ToLower(d.Serial.V) || d.ASICID.Known() && hex == strings.ToLower(d.ASICID.V)
}
