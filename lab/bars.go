package lab

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
)

// Wormhole's BAR4: windows into the management core's address space.
const (
	flatMemory     = 0x1E8_0000
	flatRegisters  = 0x1F3_0000
	flatWindowRegs = 0x1C0_0000
)

// flat is an offset of BAR4 as an address of the management core's own.
func flat(offset uint64) (own uint32, ok bool) {
	switch {
	case offset >= flatMemory && offset < flatMemory+csmSize:
		return uint32(offset-flatMemory) + csmStart, true
	case offset >= flatRegisters && offset < flatRegisters+0x1000:
		return uint32(offset-flatRegisters) + registers, true
	}
	return 0, false
}

// LoadFlat is a load from Wormhole's BAR4.
func (c *Chip) LoadFlat(offset uint64) uint32 {
	if own, ok := flat(offset); ok {
		if w, ok := c.written(own); ok {
			return w
		}
	}
	if offset >= flatWindowRegs && offset < flatWindowRegs+186*8 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.dead {
			return c.windows[int(offset-flatWindowRegs)/8][offset%8/4]
		}
	}
	return c.Chip.LoadFlat(offset)
}

// StoreFlat is a write to Wormhole's BAR4: the driver's own.
func (c *Chip) StoreFlat(offset uint64, value uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, ok := flat(offset)
	switch {
	case c.dead:
	case ok:
		c.storeOwn(own, value)
	case offset >= flatWindowRegs && offset < flatWindowRegs+186*8:
		c.setWindow(int(offset-flatWindowRegs)/8, int(offset%8/4), value)
	}
}

func (c *Chip) setWindow(id, part int, value uint32) {
	w := c.windows[id]
	w[part] = value
	c.windows[id] = w
}

// Blackhole's BAR0: windows of 2 MiB, then their registers.
const (
	blackholeWindow     = 2 << 20
	blackholeWindows    = 202
	blackholeWindowRegs = 0x1FC0_0000
	blackholeDriverOwn  = 201
	blackholeTileX      = 0x1FD0_4044
	wormholeDriverOwn   = 185
)

// window is the window that an offset of BAR0 lies in, where it starts and how
// large it is.
func (c *Chip) window(offset uint64) (id int, start, size uint64) {
	if c.arch == model.Blackhole {
		return int(offset / blackholeWindow), offset / blackholeWindow * blackholeWindow, blackholeWindow
	}
	const small, medium, large = 1 << 20, 2 << 20, 16 << 20
	const mediumAt, largeAt = 156 * small, 156*small + 10*medium
	switch {
	case offset < mediumAt:
		return int(offset / small), offset / small * small, small
	case offset < largeAt:
		n := (offset - mediumAt) / medium
		return 156 + int(n), mediumAt + n*medium, medium
	default:
		n := (offset - largeAt) / large
		return 166 + int(n), largeAt + n*large, large
	}
}

// aim is where a window points, from its registers.
func (c *Chip) aim(id int, size uint64) arc.Aim {
	c.mu.Lock()
	w := c.windows[id]
	c.mu.Unlock()
	record := uint64(w[1])<<32 | uint64(w[0])
	if c.arch == model.Blackhole {
		return arc.Aim{X: uint16(record >> 43 & 0x3F), Y: uint16(record >> 49 & 0x3F), Address: record & (1<<43 - 1) * size}
	}
	bits := 16 // of the address
	switch size {
	case 2 << 20:
		bits = 15
	case 16 << 20:
		bits = 12
	}
	return arc.Aim{X: uint16(record >> bits & 0x3F), Y: uint16(record >> (bits + 6) & 0x3F), Address: record & (1<<bits - 1) * size}
}

// LoadBAR0 is a load from BAR0: through a window, or of a window's registers.
func (c *Chip) LoadBAR0(offset uint64) uint32 {
	if c.arch == model.Blackhole && offset >= blackholeWindows*blackholeWindow {
		return c.blackholeRegisters(offset)
	}
	id, start, size := c.window(offset)
	a := c.aim(id, size)
	return c.load(a.X, a.Y, a.Address+offset-start)
}

func (c *Chip) blackholeRegisters(offset uint64) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int(offset-blackholeWindowRegs) / 4
	switch {
	case c.dead:
		return arc.AllOnes
	case offset == blackholeTileX:
		return 11
	case offset >= blackholeWindowRegs && n/3 < blackholeWindows+8:
		return c.windows[n/3][n%3]
	}
	return 0
}

// StoreBAR0 is a write to BAR0. What goes through the driver's own window is
// the driver's.
func (c *Chip) StoreBAR0(offset uint64, value uint32) {
	if c.arch == model.Blackhole && offset >= blackholeWindows*blackholeWindow {
		if n := int(offset-blackholeWindowRegs) / 4; offset >= blackholeWindowRegs && n/3 < blackholeWindows+8 {
			c.mu.Lock()
			c.setWindow(n/3, n%3, value)
			c.mu.Unlock()
		}
		return
	}
	id, start, size := c.window(offset)
	a := c.aim(id, size)
	own := id == blackholeDriverOwn && c.arch == model.Blackhole || id == wormholeDriverOwn && c.arch == model.Wormhole
	c.Store(a.X, a.Y, a.Address+offset-start, value, own)
}
