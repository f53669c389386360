package arc

// Wormhole's BAR4: windows into the management core's address space.
const (
	flatMemory    = 0x1E8_0000
	flatRegisters = 0x1F3_0000
)

// FlatSize is the size of Wormhole's BAR4.
const FlatSize = 32 << 20

// LoadFlat is a load from Wormhole's BAR4.
func (c *Chip) LoadFlat(offset uint64) uint32 {
	c.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	switch {
	case c.faults.Dead:
		return AllOnes
	case offset >= flatMemory && offset < flatMemory+csmEnd-csmStart:
		return c.memory(uint32(offset-flatMemory) + csmStart)
	case offset >= flatRegisters && offset < flatRegisters+0x1000:
		return c.own(uint32(offset-flatRegisters) + registers)
	}
	return 0
}

// Aim is where a window points.
type Aim struct {
	X, Y    uint16
	Address uint64
}
