package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Image is a decoded region, without verdicts on its slots.
type Image struct {
	Layout   Layout
	ChipID   uint64 // as the header has it; layout 1 stores only a location there
	DeviceID uint32 // logical id as the last attacher saw it
	Updated  time.Time
	Active   uint32 // the writer's count of slots; unreliable
	Refs     uint32 // the writer's count of attached providers; unreliable
	Totals   [numPools]uint64
	Slots    []Slot // occupied ones, by index
	Odd      int    // slots with a pid no writer stores
}

// Slot is one process's record.
type Slot struct {
	Index   int
	PID     int32 // in the writer's own pid namespace
	Bytes   [numPools]uint64
	Updated time.Time // zero if the writer never stored one
	Name    string    // raw; a dead owner's until an adopter's claim
}

// ErrInitialising means that the writer has not finished initialising the
// region, or died while it did.
var ErrInitialising = errors.New("the region is being initialised")

// UnknownLayoutError means that an unknown version of tt-metal wrote the
// region.
type UnknownLayoutError struct {
	Version uint32
	Size    int // of the file, if that is the mismatch; else 0
}

func (e *UnknownLayoutError) Error() string {
	if e.Size != 0 {
		return fmt.Sprintf("layout version %d with %d bytes is not known", e.Version, e.Size)
	}
	return fmt.Sprintf("layout version %d is not known", e.Version)
}

// Parse decodes a region. It accepts any bytes: for anything but an initialised
// region of a known layout it returns ErrInitialising or an
// *UnknownLayoutError.
func Parse(b []byte) (*Image, error) { return parseAfter(nil, b) }

// parseAfter is Parse of a region that was before last time, or nil. Names that are
// the same share their memory.
func parseAfter(before *Image, b []byte) (*Image, error) {
	if len(b) < Size {
		return nil, fmt.Errorf("%w: %d of %d bytes", ErrInitialising, len(b), Size)
	}
	version := u32(b, offVersion)
	if version == 0 {
		return nil, ErrInitialising
	}
	layout, ok := layoutOf(version)
	if !ok {
		return nil, &UnknownLayoutError{Version: version}
	}
	if version == 1 && len(b) != Size {
		// A prototype before the branch also said 1 and had other fields.
		return nil, &UnknownLayoutError{Version: version, Size: len(b)}
	}
	if layout.hasReady && u32(b, offInitState) != ready {
		return nil, ErrInitialising
	}
	img := &Image{
		Layout:   layout,
		ChipID:   u64(b, offChipID),
		DeviceID: u32(b, offDeviceID),
		Active:   u32(b, offActive),
		Refs:     u32(b, offRefs),
	}
	img.parseFigures(b)
	img.parseSlots(before, b)
	return img, nil
}

// parseFigures parses what changes while owners and attachments do not.
func (img *Image) parseFigures(b []byte) {
	img.Updated, img.Totals = wallClock(u64(b, offUpdated)), pools(b[offTotals:])
}

func (img *Image) parseSlots(before *Image, b []byte) {
	var old []Slot
	if before != nil {
		old = before.Slots
	}
	occupied := 0
	for i := range numSlots {
		if u32(slotAt(b, i), slotPID) != 0 {
			occupied++
		}
	}
	img.Slots = make([]Slot, 0, occupied)
	for i := range numSlots {
		s := slotAt(b, i)
		for len(old) > 0 && old[0].Index < i {
			old = old[1:]
		}
		switch pid := int32(u32(s, slotPID)); {
		case pid > 0:
			img.Slots = append(img.Slots, Slot{Index: i, PID: pid, Name: nameOf(s, i, old)})
			img.Slots[len(img.Slots)-1].parseFigures(s)
		case pid < -1, pid == -1 && !img.Layout.hasReady:
			img.Odd++
		}
	}
}

// parseFigures parses what changes while the owner does not.
func (s *Slot) parseFigures(b []byte) {
	s.Bytes, s.Updated = pools(b[slotBytes:]), wallClock(u64(b, slotUpdated))
}

// slotAt is the i-th slot of a region of full size.
func slotAt(b []byte, i int) []byte {
	at := offSlots + i*slotSize
	return b[at : at+slotSize : at+slotSize]
}

func pools(b []byte) (v [numPools]uint64) {
	for i := range v {
		v[i] = u64(b, 8*i)
	}
	return v
}

// wallClock converts the writer's nanoseconds to a time; 0 and implausible
// values become the zero time.
func wallClock(ns uint64) time.Time {
	if ns == 0 || ns > 1<<62 {
		return time.Time{}
	}
	return time.Unix(0, int64(ns))
}

// nameOf is the name in slot i. old begins with that slot as it was, if it was taken.
func nameOf(slot []byte, i int, old []Slot) string {
	name := slot[slotName:][:nameSize]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	if len(old) > 0 && old[0].Index == i && old[0].Name == string(name) {
		return old[0].Name
	}
	return string(name)
}

func u32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
