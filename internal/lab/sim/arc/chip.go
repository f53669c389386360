// Package arc is the memory of a chip as PCIe and the NoC show it: the registers
// and the memory of the management core with the telemetry table, the L1 of dispatch
// cores, the L1 of Ethernet cores.
//
// It serves what the firmware is believed to serve. Tests read it in process; the
// simulator maps a part of it; lab/ lets the real driver bind to it under QEMU.
package arc

import (
	"sync"

	"github.com/ttmon/ttmon/internal/model"
)

// Where things are in the memory of the management core.
const (
	csmStart = 0x1000_0000
	csmEnd   = 0x1008_0000

	tableAt   = 0x1001_0000
	dataAt    = 0x1001_1000
	dataEnd   = 0x1001_2000
	runtimeAt = 0x1006_0000 // buffer that firmware reserves for programs
	// Wormhole's place for the address and size of that buffer.
	wormholeRuntime = 0x1007_5C00

	runtimeSize = 1024
	maxTag      = 127
)

// Registers of the management core, from the address that both chips have them
// at in its own address space.
const (
	registers = 0x8003_0000

	whBootCode  = 0x60
	whTable     = 0x1D0
	whData      = 0x1D4
	bhReady     = 0x408
	bhData      = 0x430
	bhTable     = 0x434
	bhRuntime   = 0x458
	bhRuntimeSz = 0x45C

	// wormholeARC is where the NoC has the address space of Wormhole's
	// management core.
	wormholeARC = 0x8_0000_0000
)

// AllOnes is what a chip that is off the bus reads as.
const AllOnes = 0xFFFF_FFFF

// Chip is an emulated chip. Its methods may be called by many at once.
type Chip struct {
	arch  model.Arch
	words func(tag uint16) (word uint32, published bool)

	mu       sync.Mutex
	faults   Faults
	tiles    map[tile]func(address uint64) uint32
	dispatch *Dispatch
	reads    uint64
	resume   chan struct{} // closed when a stalled load may return
}

type tile struct{ x, y uint16 }

// Faults are what can be wrong with a chip.
type Faults struct {
	Dead    bool   // all ones everywhere
	NoTable bool   // both pointers are 0
	Version uint32 // of the table, instead of the right one
	Count   uint32 // of entries, instead of the right one
	TableAt uint32 // pointer to the table, instead of the right one
	Holes   bool   // entries of tag 0 in between, as Blackhole's firmware leaves them
	Stall   bool   // loads do not return
}

// New makes a chip whose table holds the given words.
func New(arch model.Arch, words func(tag uint16) (word uint32, published bool)) *Chip {
	return &Chip{arch: arch, words: words, tiles: map[tile]func(uint64) uint32{}, resume: make(chan struct{})}
}

// Fixed is a table of words that do not move.
func Fixed(words map[uint16]uint32) func(uint16) (uint32, bool) {
	return func(tag uint16) (uint32, bool) { w, ok := words[tag]; return w, ok }
}

// SetFaults replaces what is wrong with the chip; loads that were stalled
// return.
func (c *Chip) SetFaults(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults.Stall && !f.Stall {
		close(c.resume)
		c.resume = make(chan struct{})
	}
	c.faults = f
}

// Reads counts the loads so far.
func (c *Chip) Reads() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// arcTile is where the management core is.
func (c *Chip) arcTile() tile {
	if c.arch == model.Blackhole {
		return tile{8, 0}
	}
	return tile{0, 10}
}

// Load is a load over the NoC.
func (c *Chip) Load(x, y uint16, address uint64) uint32 {
	c.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if c.faults.Dead {
		return AllOnes
	}
	if (tile{x, y}) != c.arcTile() {
		if at := c.tiles[tile{x, y}]; at != nil {
			return at(address)
		}
		return AllOnes // nothing answers there
	}
	if c.arch == model.Wormhole {
		if address < wormholeARC || address-wormholeARC >= 1<<32 {
			return AllOnes
		}
		address -= wormholeARC
	}
	return c.own(uint32(address))
}

// wait holds up a load while loads are stalled.
func (c *Chip) wait() {
	c.mu.Lock()
	stalled, resume := c.faults.Stall, c.resume
	c.mu.Unlock()
	if stalled {
		<-resume
	}
}

// own is a word of the management core's address space.
func (c *Chip) own(address uint32) uint32 {
	switch {
	case address >= csmStart && address < csmEnd:
		return c.memory(address)
	case address >= registers && address < registers+0x1000:
		if c.arch == model.Blackhole {
			return c.blackholeRegister(address)
		}
		return c.wormholeRegister(address)
	}
	return 0
}

func (c *Chip) memory(address uint32) uint32 {
	switch {
	case address >= tableAt && address < dataAt:
		return c.table(int(address-tableAt) / 4)
	case address >= dataAt && address < dataEnd:
		w, _ := c.words(uint16((address - dataAt) / 4))
		return w
	case address >= runtimeAt && address < runtimeAt+runtimeSize:
		return c.dispatch.control(int(address - runtimeAt))
	case c.arch == model.Wormhole && address == wormholeRuntime:
		return runtimeAt
	case c.arch == model.Wormhole && address == wormholeRuntime+4:
		return runtimeSize
	}
	return 0
}

// Version of the table, as each architecture's firmware publishes it.
func (c *Chip) version() uint32 {
	if c.arch == model.Blackhole {
		return 0x0000_0100
	}
	return 0x0001_0000
}

// table is a word of the table: version, number of entries, entries.
func (c *Chip) table(n int) uint32 {
	tags := c.tags()
	switch {
	case n == 0 && c.faults.Version != 0:
		return c.faults.Version
	case n == 0:
		return c.version()
	case n == 1 && c.faults.Count != 0:
		return c.faults.Count
	case n == 1:
		return uint32(len(tags))
	case n-2 < len(tags) && tags[n-2] != 0:
		return uint32(tags[n-2]) | uint32(tags[n-2])<<16
	}
	return 0
}

// tags are the published ones, with holes where that is asked for.
func (c *Chip) tags() (list []uint16) {
	for tag := uint16(1); tag <= maxTag; tag++ {
		if _, ok := c.words(tag); ok {
			list = append(list, tag)
		} else if c.faults.Holes && len(list) > 0 && len(list)%3 == 0 {
			list = append(list, 0)
		}
	}
	return list
}

func (c *Chip) tablePointer() uint32 {
	switch {
	case c.faults.NoTable:
		return 0
	case c.faults.TableAt != 0:
		return c.faults.TableAt
	}
	return tableAt
}

func (c *Chip) dataPointer() uint32 {
	if c.faults.NoTable {
		return 0
	}
	return dataAt
}

func (c *Chip) wormholeRegister(address uint32) uint32 {
	switch address - registers {
	case whBootCode:
		return 0xC0DE_0001
	case whTable:
		return c.tablePointer()
	case whData:
		return c.dataPointer()
	}
	return 0
}

func (c *Chip) blackholeRegister(address uint32) uint32 {
	switch address - registers {
	case bhReady:
		return 5
	case bhTable:
		return c.tablePointer()
	case bhData:
		return c.dataPointer()
	case bhRuntime:
		return runtimeAt
	case bhRuntimeSz:
		return runtimeSize
	}
	return 0
}
