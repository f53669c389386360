package board

import (
	"math"

	"github.com/ttmon/ttmon/internal/model"
)

// How says by what a board was identified.
type How string

// Ways to identify a board, best first.
const (
	ByCardType  How = "card type"
	BySerial    How = "serial number"
	BySubsystem How = "PCI subsystem"
	ByArch      How = "architecture only" // not in the catalogue: only what its generation has in common
	Unknown     How = "not recognised"
)

// Identify finds the board of a device from what the driver and PCI say. Any of
// the first three may be empty or malformed; a board of another generation than
// that of the PCI device id is rejected. The last resort is a Board that is not
// Identified and has only what its generation has in common.
func Identify(cardType, serial string, subDevice uint16, arch model.Arch) (Board, How) {
	fits := func(b Board, ok bool) bool {
		return ok && (arch == b.Arch || arch == model.UnknownArch || arch == "")
	}
	if b, ok := ByCard(cardType); fits(b, ok) {
		return b, ByCardType
	}
	if id, ok := ParseID(serial); ok && CodeOf(id) <= math.MaxUint16 {
		if b, ok := ByCode(uint16(CodeOf(id))); fits(b, ok) {
			return b, BySerial
		}
	}
	if b, ok := ByCode(subDevice); fits(b, ok) {
		return b, BySubsystem
	}
	switch arch {
	case model.Wormhole, model.Blackhole, Grayskull:
		return generation(arch), ByArch
	}
	return generation(model.UnknownArch), Unknown
}
