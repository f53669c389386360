package lab

// Wormhole's firmware publishes a second, older table of words at fixed offsets.
// Drivers before 2.9 ask for its address with a message, and read their hwmon
// files (1.34: all files) from it.
const (
	legacyAt      = 0x1001_8000
	legacySize    = 0x100
	askLegacy     = 0x2C // message: the answer is in the register of arguments
	whArgument    = registers + 0x6C
	legacyLimitHi = 16
)

// legacyTags are the words of the older table that hold what a tag of the table
// holds, by offset.
var legacyTags = map[uint32]uint16{
	0x10: 1, 0x14: 2, 0x18: 29, 0x2C: 24, 0x30: 27, 0x34: 26, 0x60: 14, 0x64: 15, 0x68: 16, 0x70: 6, 0xB8: 58, 0xC4: 28,
}

// legacy is a word of the older table.
func (c *Chip) legacy(offset uint32) uint32 {
	if tag, ok := legacyTags[offset]; ok {
		w, _ := c.words(tag)
		return w
	}
	word := func(tag uint16) uint32 { w, _ := c.words(tag); return w }
	switch offset {
	case 0x74:
		return word(11) >> 12 // sixteenths of a degree
	case 0x80:
		return word(64)<<legacyLimitHi | word(7)&0xFFFF
	case 0x84:
		return word(55)<<legacyLimitHi | word(8)&0xFFFF
	case 0x88:
		return word(9)
	case 0x8C:
		return word(56)
	}
	return 0
}
