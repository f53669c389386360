package lab

import (
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
)

// Chip is an emulated chip that a driver can write: with windows, a message queue, and
// an account of what was done to it: every firmware message, every write.
type Chip struct {
	*arc.Chip
	arch  model.Arch
	words func(tag uint16) (word uint32, published bool)

	mu       sync.Mutex
	dead     bool              // all ones everywhere
	stored   map[uint32]uint32 // words of memory and registers that were written
	windows  map[int][3]uint32 // window registers, by window
	messages []uint32
	writes   []Write
}

// Write is a write over the NoC, or into the memory of the management core, by
// something else than the driver's own window.
type Write struct {
	X, Y    uint16
	Address uint64
	Value   uint32
}

// NewChip makes a chip whose table holds the given words.
func NewChip(arch model.Arch, words func(tag uint16) (word uint32, published bool)) *Chip {
	return &Chip{Chip: arc.New(arch, words), arch: arch, words: words, stored: map[uint32]uint32{}, windows: map[int][3]uint32{}}
}

// SetDead takes the chip off the bus, or puts it back.
func (c *Chip) SetDead(dead bool) {
	c.mu.Lock()
	c.dead = dead
	c.mu.Unlock()
	c.SetFaults(arc.Faults{Dead: dead})
}

// Reset is a reset of the chip: what was written is gone, windows point nowhere.
func (c *Chip) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.stored)
	clear(c.windows)
}

// Messages are the firmware messages so far: their first words.
func (c *Chip) Messages() []uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}

// Writes are the writes so far that were not the driver's.
func (c *Chip) Writes() []Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// Where the management core has things that readers do not need.
const (
	csmStart = 0x1000_0000
	csmSize  = 0x8_0000

	registers = 0x8003_0000
	whQueue   = registers + 0x1D8
	bhQueue   = registers + 0x42C

	controlAt = 0x1001_2000 // of the message queue
	queueAt   = 0x1001_3000

	// wormholeARC is where the NoC has the address space of Wormhole's
	// management core.
	wormholeARC = 0x8_0000_0000
)

// own is an address of the NoC as one of the management core's own; ok is false where
// it is not in its tile.
func (c *Chip) own(x, y uint16, address uint64) (own uint32, ok bool) {
	if c.arch == model.Blackhole {
		return uint32(address), x == 8 && y == 0
	}
	if address >= wormholeARC {
		address -= wormholeARC
	}
	return uint32(address), x == 0 && y == 10
}

// written is a word of the management core's address space that a driver wrote, or
// that only a driver asks for.
func (c *Chip) written(address uint32) (uint32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, false
	}
	if w, ok := c.stored[address]; ok {
		return w, true
	}
	switch {
	case address == bhQueue && c.arch == model.Blackhole, address == whQueue && c.arch == model.Wormhole:
		return controlAt, true
	case address == controlAt && c.arch == model.Blackhole:
		return queueAt, true
	case address == controlAt:
		return queueAt - csmStart, true
	case address == controlAt+4:
		return queueEntries, true
	case c.arch == model.Wormhole && address >= legacyAt && address < legacyAt+legacySize:
		return c.legacy(address - legacyAt), true
	}
	return 0, false
}

// load is a load over the NoC.
func (c *Chip) load(x, y uint16, address uint64) uint32 {
	if own, ok := c.own(x, y, address); ok {
		if w, ok := c.written(own); ok {
			return w
		}
	}
	return c.Load(x, y, address)
}
