package collect

import (
	"slices"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/firmware"
)

// Telemetry is who reads the chips' own tables.
type Telemetry interface {
	// Fill adds what a chip's table said to its device.
	Fill(*model.Device)
	// Own reports whether a process reads a chip on our behalf: it is not
	// listed as a user of the device.
	Own(pid int) bool
}

// noTelemetry reads no chip.
type noTelemetry struct{}

func (noTelemetry) Fill(*model.Device) {}
func (noTelemetry) Own(int) bool       { return false }

// Readable is what decides whether the chips of a snapshot may be read.
func Readable(s *model.Snapshot) []firmware.Seen {
	seen := make([]firmware.Seen, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		seen[i].Device = d
		h := &seen[i].Holders
		h.Unknown = d.HiddenFDs > 0 || s.Host.HiddenFDs > 0 ||
			slices.ContainsFunc(d.Doubts, func(x model.Doubt) bool { return x.Kind == model.UsersUnknown })
		for k := range s.Processes {
			p := &s.Processes[k]
			if slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == d.Index && (u.OpenFDs.V > 0 || u.Inherited) }) {
				h.Add(p)
			}
		}
	}
	return seen
}

// measure replaces the catalogue's capacity of a device's own chip by that of the
// channels that work.
func measure(d *model.Device, b board.Board) {
	n, ok := telemetry.MemoryChannels(&d.Telemetry)
	if !ok || b.BankBytes == 0 {
		return
	}
	own := slices.IndexFunc(d.Chips, func(c model.Chip) bool { return !c.Remote })
	if own < 0 {
		return
	}
	perChannel := b.BankBytes
	if b.Arch == model.Wormhole {
		perChannel *= 2 // two banks share a channel
	}
	d.Chips[own].Memory.Pools[model.DRAM].Total = model.Value(uint64(n) * perChannel)
	total := &d.Memory.Pools[model.DRAM].Total
	*total = model.Reading[uint64]{}
	for i := range d.Chips {
		t := d.Chips[i].Memory.Pools[model.DRAM].Total
		if !t.Known() {
			*total = t
			return
		}
		*total = model.Reading[uint64]{V: total.V + t.V, Status: model.Known, Nominal: total.Nominal || t.Nominal}
	}
}
