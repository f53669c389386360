package umd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// Descriptor is a cluster descriptor: the chips that UMD found on a host, or is
// to simulate, and the Ethernet links between them.
type Descriptor struct {
	Chips   []Chip // by ID
	Boards  []BoardEntry
	Links   []Link        // each once
	Outside []OutsideLink // links that leave the host
}

// Chip is one chip of a descriptor.
type Chip struct {
	ID        int // UMD's own number, unrelated to the kernel's
	Arch      model.Arch
	UniqueID  uint64
	Synthetic bool // UniqueID is made up from ID because the file has none
	Device    int  // N of /dev/tenstorrent/N when the file was made; model.NoDevice for remote chips
	BusID     string
	Bus       int // PCI bus number, a remote chip has its gateway's; -1: not in the file
	Coord     *Coord
	Location  int // ASIC location; -1: not in the file
	Harvest   Harvest
	Board     int // index into Boards; -1: not in the file
}

// Remote reports whether the chip has no PCIe of its own.
func (c Chip) Remote() bool { return c.Device == model.NoDevice }

// Coord is where Wormhole's Ethernet firmware sees a chip.
type Coord struct{ X, Y, Rack, Shelf int }

// Harvest says which units of a chip are disabled. Bits are in UMD's logical
// order: their number counts, their positions do not.
type Harvest struct {
	NOCTranslation                 bool
	Tensix, DRAM, Eth, PCIe, L2CPU uint32
}

// BoardEntry is a board and the chips on it.
type BoardEntry struct {
	ID    uint64 // serial number
	Type  string // n150, n300, p100, p150, p300, ubb…
	Chips []int  // Chip.ID
}

// End is one end of a link. Blackhole's channels leave out harvested ports.
type End struct{ Chip, Channel int }

// Link joins two chips of the host.
type Link [2]End

// OutsideLink joins a chip of the host to one elsewhere.
type OutsideLink struct {
	End           End
	RemoteID      uint64 // unique id of the other chip
	RemoteChannel int
}

// Chip finds a chip by UMD's number, or returns nil.
func (d *Descriptor) Chip(id int) *Chip {
	i, ok := slices.BinarySearchFunc(d.Chips, id, func(c Chip, id int) int { return cmp.Compare(c.ID, id) })
	if !ok {
		return nil
	}
	return &d.Chips[i]
}

// Placements is what board.Resolver can learn from the descriptor: the chips
// on PCIe that have an id of their own. Old files have no addresses but bus
// numbers, or not even those.
func (d *Descriptor) Placements() []board.Placement {
	var ps []board.Placement
	for _, c := range d.Chips {
		if c.Remote() || c.Synthetic {
			continue
		}
		p := board.Placement{ID: c.UniqueID, BusID: c.BusID, Device: c.Device}
		if p.BusID == "" && c.Bus >= 0 {
			p.BusID = fmt.Sprintf("0000:%02x:00.0", c.Bus)
		}
		ps = append(ps, p)
	}
	return ps
}
