package prom

import (
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// infoKey is what the labels of the info series depend on.
type infoKey struct {
	index                     int
	chipID                    string
	board, serial, arch, path string
	numa, tray, slot, chips   int
	firmware                  model.Firmware
}

func (w *Walker) deviceExtras(s *model.Snapshot, emit Emit) {
	each := func(f func(d *model.Device, x *device)) {
		for i := range s.Devices {
			f(&s.Devices[i], w.devices[s.Devices[i].BusID])
		}
	}
	each(func(d *model.Device, x *device) {
		x.describe(d)
		emit(deviceInfo, x.info, 1)
	})
	each(func(_ *model.Device, x *device) {
		for _, labels := range x.firmware {
			emit(firmwareInfo, labels, 1)
		}
	})
	each(func(d *model.Device, x *device) {
		for _, state := range states {
			w.buf = label(append(w.buf[:0], x.labels...), "state", string(state))
			emit(deviceState, w.buf, flag(d.State == state))
		}
	})
	w.conditions(s, emit)
	w.outsideLinks(s, emit)
	// Devices that have gone keep their counters: the loss is in them.
	for _, c := range []struct {
		f *Family
		v func(*device) float64
	}{
		{deviceResets, func(x *device) float64 { return x.resets }},
		{deviceLosses, func(x *device) float64 { return x.losses }},
	} {
		for _, id := range w.known() {
			x := w.devices[id]
			emit(c.f, x.labels, c.v(x))
		}
	}
	each(func(d *model.Device, x *device) {
		if d.Power.Known() {
			emit(energy, x.labels, x.joules)
		}
	})
	each(func(d *model.Device, x *device) {
		is := d.Memory.Tracking
		if is == "" {
			is = model.TrackAbsent
		}
		for _, t := range trackings {
			w.buf = label(append(w.buf[:0], x.labels...), "status", string(t))
			emit(tracking, w.buf, flag(t == is))
		}
	})
}

// conditions emits what assess found.
func (w *Walker) conditions(s *model.Snapshot, emit Emit) {
	a := assess.Of(s)
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range model.ConditionKinds {
			k := &model.ConditionKinds[j]
			if k.Level == model.Fine || k.Subject == model.OfHost {
				continue
			}
			_, holds := a.Find(d.Index, k.Kind)
			if !holds && !assess.CanFind(d, k.Kind) {
				continue
			}
			w.buf = label(append(w.buf[:0], w.devices[d.BusID].labels...), "condition", string(k.Kind))
			emit(condition, w.buf, flag(holds))
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		is, _ := a.Find(d.Index, model.ConditionThrottled)
		for _, cause := range throttles {
			w.buf = label(append(w.buf[:0], w.devices[d.BusID].labels...), "reason", string(cause))
			emit(throttle, w.buf, flag(is.Cause == cause))
		}
	}
}

// outsideLinks emits the links to other hosts whose other end UMD has named. Each is
// a channel of a device: there are as many as the chips have, and collect limits how
// often an end can get another name.
func (w *Walker) outsideLinks(s *model.Snapshot, emit Emit) {
	each := func(f *Family, value func(*model.EthernetPort) (float64, bool)) {
		for i := range s.Devices {
			d := &s.Devices[i]
			for k := range d.Telemetry.Ports {
				p := &d.Telemetry.Ports[k]
				v, known := value(p)
				if p.Link != model.LinkOutside || !p.Remote.Known() || !known {
					continue
				}
				w.buf = label(append(w.buf[:0], w.devices[d.BusID].labels...), "channel", strconv.Itoa(p.Channel))
				w.buf = label(w.buf, "link_chip", strconv.FormatUint(p.Remote.Own, 10))
				w.buf = label(w.buf, "remote_chip", strconv.FormatUint(p.Remote.Chip, 10))
				w.buf = label(w.buf, "remote_channel", strconv.Itoa(p.Remote.Channel))
				emit(f, w.buf, v)
			}
		}
	}
	each(outsideLink, func(*model.EthernetPort) (float64, bool) { return 1, true })
	each(outsideUp, func(p *model.EthernetPort) (float64, bool) { return flag(p.Up.V), p.Up.Known() })
}

// describe rebuilds the labels of the info series if they have changed.
func (x *device) describe(d *model.Device) {
	key := infoKey{
		index: x.index, chipID: x.chipID, board: d.Board.V, serial: d.Serial.V, arch: string(d.Arch), path: d.Path,
		numa: -1, tray: d.Tray, slot: d.Slot, chips: len(d.Chips), firmware: d.Firmware,
	}
	if n, ok := d.NUMANode.Get(); ok {
		key.numa = n
	}
	if key == x.infoOf && x.info != nil {
		return
	}
	if x.info != nil && !d.Board.Known() && !d.Serial.Known() {
		return // it does not answer: what it is has not changed
	}
	x.infoOf = key
	b := slices.Clone(x.labels)
	b = label(b, "board", key.board)
	b = label(b, "serial", key.serial)
	b = label(b, "arch", key.arch)
	b = label(b, "chips", strconv.Itoa(key.chips))
	if key.numa >= 0 {
		b = label(b, "numa_node", strconv.Itoa(key.numa))
	}
	if key.tray > 0 {
		b = label(b, "tray", strconv.Itoa(key.tray))
	}
	if key.slot > 0 {
		b = label(b, "slot", strconv.Itoa(key.slot))
	}
	x.info = b
	x.firmware = x.firmware[:0]
	for _, f := range []struct {
		name    string
		version model.Reading[string]
	}{
		{"bundle", d.Firmware.Bundle},
		{"arc", d.Firmware.ARC},
		{"eth", d.Firmware.ETH},
		{"m3_app", d.Firmware.M3App},
		{"m3_bootloader", d.Firmware.M3Bootloader},
		{"tt_flash", d.Firmware.TTFlash},
	} {
		if v, ok := f.version.Get(); ok {
			b := label(slices.Clone(x.labels), "component", f.name)
			x.firmware = append(x.firmware, label(b, "version", v))
		}
	}
}
