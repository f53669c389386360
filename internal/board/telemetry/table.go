// Package telemetry knows the table in which a chip's firmware publishes what it
// measures: where it is, how it is laid out, and what each tag means on each
// architecture. The same number can mean different things on the two.
//
// It stands between the readers of chip memory and the model. It reads nothing
// itself: words come in, readings come out.
package telemetry

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// The memory of the management core, in which table and values must lie.
const (
	MemoryStart = 0x1000_0000
	MemoryEnd   = 0x1008_0000
)

// Limits for a plausible header of the table.
const (
	MaxEntries  = 1024
	maxMajor    = 1
	headerWords = 2
)

// AllOnes is what every read of a chip that is off the bus gives.
const AllOnes = 0xFFFF_FFFF

// Entry says where the value of a tag is: Index words behind the data pointer.
type Entry struct{ Tag, Index uint16 }

// Index is the directory of a table.
type Index struct {
	Table, Data uint32 // addresses in the memory of the management core
	Entries     []Entry
}

// Words are the values of a table by tag.
type Words map[uint16]uint32

// CheckPointers says what is wrong with the two addresses; empty: nothing.
func CheckPointers(table, data uint32) model.TelemetryCause {
	switch {
	case table == AllOnes || data == AllOnes:
		return model.ReadAllOnes
	case table == 0 || data == 0:
		return model.NoTable
	case !inMemory(table, headerWords) || !inMemory(data, 1):
		return model.TableInvalid
	}
	return ""
}

// inMemory reports whether a number of words from an address lie in the memory
// of the management core.
func inMemory(address uint32, words int) bool {
	return address%4 == 0 && address >= MemoryStart && uint64(address)+4*uint64(words) <= MemoryEnd
}

// InMemory reports whether a word is in the memory of the management core.
func InMemory(address uint32) bool { return inMemory(address, 1) }

// CheckHeader says what is wrong with the first two words of a table, and how
// many entries follow.
func CheckHeader(table, version, count uint32) (entries int, wrong model.TelemetryCause) {
	switch {
	case version == AllOnes || count == AllOnes:
		return 0, model.ReadAllOnes
	case version>>24 != 0 || version>>16&0xFF > maxMajor || version == 0:
		return 0, model.TableUnknown
	case count == 0:
		return 0, model.NoTable
	case count > MaxEntries || !inMemory(table, headerWords+int(count)):
		return 0, model.TableInvalid
	}
	return int(count), ""
}

// NewIndex reads the entries of a table. Tag 0 is a hole; entries whose value
// would lie outside of the memory are left out, as is a tag that is there
// already.
func NewIndex(table, data uint32, words []uint32) Index {
	x := Index{Table: table, Data: data}
	seen := make(map[uint16]bool, len(words))
	for _, w := range words {
		e := Entry{Tag: uint16(w), Index: uint16(w >> 16)}
		if e.Tag == 0 || w == AllOnes || seen[e.Tag] || !inMemory(data, int(e.Index)+1) {
			continue
		}
		seen[e.Tag] = true
		x.Entries = append(x.Entries, e)
	}
	return x
}

// Address is where the value of an entry is.
func (x *Index) Address(e Entry) uint32 { return x.Data + 4*uint32(e.Index) }

// Has reports whether the table publishes a tag.
func (x *Index) Has(tag uint16) bool {
	return slices.ContainsFunc(x.Entries, func(e Entry) bool { return e.Tag == tag })
}
