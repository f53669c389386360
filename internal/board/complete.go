package board

import "github.com/ttmon/ttmon/internal/model"

// noCapacity is why these pools have no total: the program that opens the chip
// decides how large they are, and no other process can find out.
const noCapacity = "the program that opens the chip sets its size"

// Complete fills in what the driver did not say about d: the card's name, its
// chips, capacities, and nominal limits. It never replaces a value that was
// read, nor the reason why one could not be (resetting, denied, …): only what
// the driver does not offer at all. bundle is the firmware bundle as printed,
// empty if not known; some figures depend on it.
//
// It may be called again on the same device: that changes nothing.
func (b Board) Complete(d *model.Device, bundle string) {
	b.setCardType(d)
	for _, f := range []struct {
		r *model.Reading[float64]
		v model.Reading[float64]
	}{
		{&d.TemperatureLimit, nominal(b.ThrottleAt)},
		{&d.ShutdownTemperature, nominal(b.ShutdownAt)},
		{&d.PowerLimit, b.PowerLimit.At(bundle)},
		{&d.BoardPowerLimit, b.BoardPowerLimit.At(bundle)},
		{&d.VoltageLimit, nominal(b.VoltageLimit)},
		{&d.CurrentLimit, nominal(b.CurrentLimit)},
		{&d.AICLKMax, nominal(b.ClockMax)},
	} {
		fill(f.r, f.v)
	}
	fill(&d.Cores, b.Cores.At(bundle))
	if b.Arch == model.Wormhole {
		fill(&d.Fan, model.Missing[float64](model.Absent, "the driver offers no fan on wormhole"))
	}
	b.setChips(d, bundle)
}

// setCardType sets the card type where the driver has none: before its
// telemetry is up, or for boards it prints as "unknown". What it then says was
// still read off the board (its serial or PCI configuration), so it is not
// nominal.
func (b Board) setCardType(d *model.Device) {
	card, known := d.Board.Get()
	switch {
	case known && card != "unknown":
	case b.Identified():
		d.Board = model.Value(b.Card)
	case !known:
		fill(&d.Board, model.Missing[string](model.Absent, "driver, serial number and PCI ids match no board of the catalogue"))
	}
}

func (b Board) setChips(d *model.Device, bundle string) {
	if len(d.Chips) == 0 {
		d.Chips = make([]model.Chip, len(b.Slots))
		for i, slot := range b.Slots {
			d.Chips[i].Name, d.Chips[i].Remote = slot.Name, slot.Remote
		}
	}
	capacity := b.capacity(bundle)
	for i := range d.Chips {
		for p := range capacity {
			fill(&d.Chips[i].Memory.Pools[p].Total, capacity[p])
		}
	}
	for p := range d.Memory.Pools {
		fill(&d.Memory.Pools[p].Total, sumTotals(d.Chips, model.Pool(p)))
	}
}

// capacity is the size of each pool of one chip, for the pools that have one:
// of the device for DRAM, of what tt-metal's allocator has for L1.
func (b Board) capacity(bundle string) (c [model.NumPools]model.Reading[uint64]) {
	for p := range c {
		switch model.Pool(p) {
		case model.DRAM:
			c[p] = b.DRAMBytes()
		case model.L1:
			c[p] = b.AllocatorL1(bundle)
		default:
			c[p] = model.Missing[uint64](model.Absent, noCapacity)
		}
	}
	return c
}

// sumTotals adds up a pool over the chips; one chip without a total leaves none.
func sumTotals(chips []model.Chip, p model.Pool) model.Reading[uint64] {
	var sum model.Reading[uint64]
	for _, c := range chips {
		total := c.Memory.Pools[p].Total
		if !total.Known() {
			return total
		}
		sum = model.Reading[uint64]{V: sum.V + total.V, Status: model.Known, Nominal: sum.Nominal || total.Nominal}
	}
	return sum
}

// fill sets r to v if r is absent; a reason that is already there stays unless
// v has a value.
func fill[T any](r *model.Reading[T], v model.Reading[T]) {
	if r.Status == model.Absent && (v.Known() || r.Why == "") {
		*r = v
	}
}
