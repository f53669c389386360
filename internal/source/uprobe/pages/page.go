package pages

import (
	"encoding/binary"
	"math"
)

// PageBytes is the size of a page.
const PageBytes = 64

// Markers of pages that are no programs.
const (
	markSync  = 0xffffffff // the chip's clock
	markStall = 0xfffffffe // the profiler held the dispatcher up (0.80 and later)
)

type pageKind uint8

const (
	program    pageKind = iota
	other               // the chip's clock
	stall               // of so many ticks
	unprofiled          // a program without an id, of which nothing is known
)

// page is one page, in ticks of the chip's clock.
type page struct {
	kind       pageKind
	id         uint32
	start, end uint64
}

func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

func pair(b []byte, i int) uint64 { return uint64(word(b, i))<<32 | uint64(word(b, i+1)) }

// decode reads a page as every release since 0.71 has it.
func decode(b []byte) page {
	p := page{id: word(b, 2), start: pair(b, 0), end: pair(b, 4)}
	switch {
	case word(b, 3) == markSync:
		p.kind = other
	case word(b, 3) == markStall:
		p.kind = stall
	case p.id == 0:
		p.kind = unprofiled
	}
	return p
}

// record is a ProgramRealtimeRecord of 0.71 to 0.75, of which each is handed over
// alone.
type record struct {
	page
	chip    uint32
	ticks   float64
	sources uint64 // where its first name is; 0: it goes with the record
}

// maxChip is the largest number that a process gives a chip.
const maxChip = 256

// layout is how a process lays its records out.
type layout uint8

const (
	layoutUnknown layout = iota
	layoutOld            // 0.71 and 0.72: the chip, then a vector of strings of its own
	layoutNow            // 0.73 to 0.75: views of strings that stay
)

// decodeRecord reads a record. The two layouts differ behind the clock: a small
// number and a vector, or a pointer and a small count.
func decodeRecord(b []byte, last layout) (r record, is layout) {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	is = last
	switch sources, count := at(32), at(40); {
	case sources >= 4096 && count > 0 && count < 4096:
		is = layoutNow
	case sources < maxChip && count >= 4096:
		is = layoutOld
	case uint32(sources) != 0 && uint32(sources) < maxChip:
		is = layoutOld
	}
	r = record{page: page{id: word(b, 0), start: at(8), end: at(16)}, chip: word(b, 1), ticks: math.Float64frombits(at(24))}
	if r.id == 0 {
		r.kind = unprofiled
	}
	switch is {
	case layoutOld:
		r.chip = word(b, 8)
	case layoutNow:
		r.sources = at(32)
	}
	return r, is
}

// isClock reports whether a chip's clock can have so many ticks a nanosecond.
func isClock(ticks float64) bool { return ticks > 0.01 && ticks < 100 }
