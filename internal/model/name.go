package model

import (
	"slices"
	"strconv"
	"strings"
)

// AmongNamed reports whether a device is among those that people named. No names:
// all are.
func (d *Device) AmongNamed(names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, d.Named)
}

// Named reports whether a name means a device: its kernel index, bus id (the
// domain and function 0 may be left out), node, serial number or ASIC id.
func (d *Device) Named(name string) bool {
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
