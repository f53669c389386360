package board

import "strconv"

// ParseID reads a serial number or ASIC id as the driver prints it: 16 hex
// digits. All zeros and all ones are what unprogrammed or dead chips show, and
// no identity.
func ParseID(s string) (id uint64, ok bool) {
	if len(s) != 16 {
		return 0, false
	}
	id, err := strconv.ParseUint(s, 16, 64)
	return id, err == nil && id != 0 && id != ^uint64(0)
}

// CodeOf is the board code in a serial number.
func CodeOf(serial uint64) uint32 { return uint32(serial >> 36 & 0xFFFFF) }
