// Package descriptor makes the cluster descriptors of simulated boards, as
// Tenstorrent's user-mode driver would write them: which chips there are, how
// they are linked, and which of their units are switched off. The last is made
// up: real chips have their holes anywhere.
//
// It serves sim/cluster, and through it mock runs of a real tt-metal.
package descriptor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// Endpoint is one PCIe device of a host to be described.
type Endpoint struct {
	Board      board.Board
	Index      int    // N of /dev/tenstorrent/N
	BusID      string // 0000:01:00.0
	Serial     uint64 // of the board: the endpoints of a p300 share it, those of a Galaxy may
	ASIC       uint64
	Location   int    // ASIC location: 0 or 1 on a p300 (1 is L), the slot in a Galaxy tray, else 0
	Tray       int    // of a Galaxy, from 1
	TraySerial string // of a Wormhole Galaxy: seven of 0-9 and A-Z
	Bundle     string // firmware bundle, which decides how many cores some boards have
}

// Describe makes the descriptor that UMD would make of a host: chips on PCIe
// numbered in the order of their addresses, then the remote ones; links inside
// boards and Galaxies. With cables also those between boards: four n300 become
// a T3000, p150 a ring. Unique ids follow from it, as on real boards: a chip
// with a link has another one than a chip without.
//
// UMD handles one generation at a time, so the endpoints must be of one.
//
// With outside, cables lead from free channels of the first and the last chip on PCIe
// to other hosts: see Gates. The chips at their other ends are not named yet.
func Describe(endpoints []Endpoint, cables, outside bool) (*umd.Descriptor, error) {
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("describing a cluster: there are no boards")
	}
	d := new(describer)
	sorted := slices.SortedFunc(slices.Values(endpoints), func(a, b Endpoint) int { return cmp.Compare(a.BusID, b.BusID) })
	for _, e := range sorted {
		if e.Board.UMDType == "" {
			return nil, fmt.Errorf("describing a cluster: UMD has no board type for %q", e.Board.Card)
		}
		if e.Board.Arch != sorted[0].Board.Arch {
			return nil, fmt.Errorf("describing a cluster: %s and %s are of different generations; UMD handles one at a time",
				sorted[0].Board.Card, e.Board.Card)
		}
		d.add(e, 0, e.Index)
	}
	for _, e := range sorted {
		for slot := 1; slot < len(e.Board.Slots); slot++ {
			d.add(e, slot, model.NoDevice)
		}
	}
	d.wire(cables)
	if outside {
		if err := d.wireOutside(); err != nil {
			return nil, err
		}
	}
	d.identify()
	return &d.Descriptor, nil
}

// OneGeneration picks the endpoints that a UMD process on a mixed host would
// use: those of the generation of the lowest kernel index.
func OneGeneration(endpoints []Endpoint) []Endpoint {
	if len(endpoints) == 0 {
		return nil
	}
	first := slices.MinFunc(endpoints, func(a, b Endpoint) int { return cmp.Compare(a.Index, b.Index) })
	return slices.DeleteFunc(slices.Clone(endpoints), func(e Endpoint) bool { return e.Board.Arch != first.Board.Arch })
}

// describer is a descriptor in the making; at[i] belongs to Chips[i].
type describer struct {
	umd.Descriptor
	at []place
}

// place is a chip's position in the hardware.
type place struct {
	Endpoint
	slot int // behind the endpoint: 0 its own chip, 1 an n300's R
}

func (d *describer) add(e Endpoint, slot, device int) {
	c := umd.Chip{ID: len(d.Chips), Arch: e.Board.Arch, Device: device, Bus: -1, Location: e.Location + slot, Harvest: harvest(e)}
	var domain, bus int
	if n, _ := fmt.Sscanf(e.BusID, "%x:%x", &domain, &bus); n == 2 {
		c.Bus = bus
	}
	if !c.Remote() {
		c.BusID = e.BusID
	}
	c.Board = slices.IndexFunc(d.Boards, func(b umd.BoardEntry) bool { return b.ID == e.Serial })
	if c.Board < 0 {
		c.Board = len(d.Boards)
		d.Boards = append(d.Boards, umd.BoardEntry{ID: e.Serial, Type: e.Board.UMDType})
	}
	d.Boards[c.Board].Chips = append(d.Boards[c.Board].Chips, c.ID)
	if e.Board.Arch == model.Wormhole && !e.Board.Galaxy() {
		c.Coord = &umd.Coord{X: slot, Y: c.Board}
	}
	d.Chips, d.at = append(d.Chips, c), append(d.at, place{e, slot})
}

// identify gives the chips the ids that they have with these links.
func (d *describer) identify() {
	linked := make([]bool, len(d.Chips))
	for _, l := range d.Links {
		linked[l[0].Chip], linked[l[1].Chip] = true, true
	}
	for _, l := range d.Outside {
		linked[l.End.Chip] = true
	}
	for i, p := range d.at {
		d.Chips[i].UniqueID = p.Board.ChipID(board.Silicon{
			Serial: p.Serial, ASIC: p.ASIC, Location: d.Chips[i].Location, TraySerial: p.TraySerial, Linked: linked[i],
		})
	}
}

// harvest switches off as many units as the board's figures say.
func harvest(e Endpoint) umd.Harvest {
	h := umd.Harvest{NOCTranslation: true}
	cores := e.Board.Cores.At(e.Bundle).V
	if e.Board.Arch == model.Wormhole {
		if cores > 0 {
			h.Tensix = offMask(10 - cores/8) // rows of 8 cores
		}
		return h
	}
	if cores > 0 {
		h.Tensix = offMask(14 - cores/10) // columns of 10 cores
	}
	h.Eth = 1<<5 | 1<<8 // two ports of fourteen, on every Blackhole
	if e.Board.EthPorts == 0 {
		h.Eth = 1<<14 - 1
	}
	if e.Board.Banks > 0 {
		h.DRAM = offMask(8 - e.Board.Banks)
	}
	h.PCIe = 1 << 1 // of two controllers one is in use
	if e.Location > 0 {
		h.PCIe = 1 << 0
	}
	return h
}

// offMask has n bits set, from bit 3 up: real chips have holes anywhere.
func offMask(n int) uint32 { return (1<<n - 1) << 3 }
