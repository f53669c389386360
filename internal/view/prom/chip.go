package prom

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// chip is one of several on a board, seen as if it were a device of its own, so
// that its figures come from the rows that make the device's.
type chip struct {
	model.Device
	labels Labels
}

// chipTable emits what is known of single chips: memory and work. A board with one
// chip has nothing here, since its device says the same.
func (w *Walker) chipTable(s *model.Snapshot, emit Emit) {
	w.chips = w.chips[:0]
	for i := range s.Devices {
		if d := &s.Devices[i]; len(d.Chips) > 1 {
			w.addChips(d)
		}
	}
	if len(w.chips) == 0 {
		return
	}
	for i := range w.families {
		f := &w.families[i]
		if f.chip == nil {
			continue
		}
		w.eachChip(s, f, func(labels Labels, v, _ float64) { emit(f.chip, labels, v) })
		if f.chipBound != nil {
			w.eachChip(s, f, func(labels Labels, _, bound float64) { emit(f.chipBound, labels, bound) })
		}
	}
}

// addChips takes the chips of a board in. They do not have the label chip_id:
// that is the id of the chip which the device itself is.
func (w *Walker) addChips(d *model.Device) {
	for i := range d.Chips {
		name := d.Chips[i].Name
		if name == "" {
			name = strconv.Itoa(i)
		}
		c := chip{Device: model.Device{State: d.State, Memory: d.Chips[i].Memory, Work: d.Chips[i].Work, Chips: d.Chips[i : i+1 : i+1]}}
		c.labels = label(label(label(nil, "device", strconv.Itoa(d.Index)), "pci", d.BusID), "chip", name)
		w.chips = append(w.chips, c)
	}
}

// eachChip calls f with what is known of a family, and how to read it.
func (w *Walker) eachChip(s *model.Snapshot, f *deviceFamily, each func(labels Labels, v, bound float64)) {
	for i := range w.chips {
		c := &w.chips[i]
		for k := range f.rows {
			row := &f.rows[k]
			v := row.Get(s, &c.Device)
			if !v.Known() {
				continue
			}
			n := v.Num
			if row.Prom.Factor != 0 {
				n *= row.Prom.Factor
			}
			w.buf = append(append(w.buf[:0], c.labels...), row.labels...)
			each(w.buf, n, bound(v.Bound))
		}
	}
}
