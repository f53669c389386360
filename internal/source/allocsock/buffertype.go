package allocsock

import (
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// reading is which of the two lists a buffer type is from.
type reading uint8

const (
	readingUnknown reading = iota
	readingMetal           // tt-metal's own enumeration
	readingPython          // that of the Python client and the documents
)

// badPool is what the ledger counts as such.
const badPool = 255

// unclear reports whether a message cannot be interpreted before its sender has
// been inspected.
func (d *decoder) unclear(f []byte, size int) bool {
	if f[0] != msgAlloc || f[16] != 2 && f[16] != 3 || size >= size128 || d.reading != readingUnknown {
		return false
	}
	d.reading = d.classify(frameID(f)%32 != 0)
	return d.reading == readingUnknown
}

// pool is what the ledger calls the pool of a message that is not unclear.
func (d *decoder) pool(bufferType byte, size int) uint8 {
	switch bufferType {
	case 0:
		return uint8(model.DRAM)
	case 1:
		return uint8(model.L1)
	case 4:
		d.reading = readingMetal
		return uint8(model.Trace)
	case 2, 3:
	default:
		return badPool
	}
	if size >= size128 {
		d.reading = readingMetal
	}
	if d.reading == readingMetal {
		return [...]uint8{2: uint8(ledger.Host), 3: uint8(model.L1Small)}[bufferType]
	}
	return [...]uint8{2: uint8(model.L1Small), 3: uint8(model.Trace)}[bufferType]
}
