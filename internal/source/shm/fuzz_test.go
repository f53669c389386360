package shm

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
)

// FuzzParse gives the parser any bytes of any length and version. Whatever it
// accepts must stand in the bytes, word by word.
//
// The bytes are a pattern, repeated: the fuzzer is quick with short inputs, and
// a pattern as long as the region is any region at all.
func FuzzParse(f *testing.F) {
	// One slot, so that every slot is occupied.
	slot := slotAt(newImage(3, 7).slot(0, 7781, "python", time.Unix(1_790_000_000, 0), 1, 2, 3, 4, 5), 0)
	slot = append(slot[slotSize-offSlots%slotSize:], slot[:slotSize-offSlots%slotSize]...)
	for version := range uint32(7) {
		f.Add(slot, uint16(Size), version, uint32(ready))
	}
	f.Add([]byte{}, uint16(0), uint32(0), uint32(0))
	f.Add([]byte{3}, uint16(1), uint32(3), uint32(0))
	f.Add([]byte{0xFF}, uint16(Size), uint32(4), uint32(ready))
	f.Add([]byte{0xFF}, uint16(Size), uint32(4), uint32(1))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0}, uint16(Size+3), uint32(3), uint32(0))
	f.Add([]byte{7}, uint16(Size-1), uint32(4), uint32(ready))
	f.Fuzz(func(t *testing.T, pattern []byte, size uint16, version, initState uint32) {
		b := make(image, size)
		for i := range b {
			if len(pattern) > 0 {
				b[i] = pattern[i%len(pattern)]
			}
		}
		if len(b) >= offVersion+4 {
			b.put32(offVersion, version)
		}
		if len(b) >= offInitState+4 {
			b.put32(offInitState, initState)
		}
		checkParse(t, b)
	})
}

func checkParse(t *testing.T, b []byte) {
	before := slices.Clone(b)
	img, err := Parse(b)
	if !bytes.Equal(before, b) {
		t.Fatal("the parser changed its input")
	}
	if err != nil {
		_, unknown := errors.AsType[*UnknownLayoutError](err)
		if img != nil || unknown == errors.Is(err, ErrInitialising) {
			t.Fatalf("image %v, error %v", img, err)
		}
		return
	}
	if len(b) < Size || u32(b, 0) != img.Layout.Version || img.Layout.Version > 4 {
		t.Fatalf("accepted %d bytes of version %d", len(b), u32(b, 0))
	}
	checkSlots(t, b, img)
}

func checkSlots(t *testing.T, b []byte, img *Image) {
	occupied := 0
	for i := range numSlots {
		if int32(u32(b, 856+120*i)) > 0 {
			occupied++
		}
	}
	if occupied != len(img.Slots) {
		t.Fatalf("%d slots, want %d", len(img.Slots), occupied)
	}
	for _, s := range img.Slots {
		at := 856 + 120*s.Index
		if s.PID <= 0 || uint32(s.PID) != u32(b, at) {
			t.Fatalf("slot %d: pid %d", s.Index, s.PID)
		}
		for p, v := range s.Bytes {
			if v != u64(b, at+8+8*p) {
				t.Fatalf("slot %d pool %d: %d", s.Index, p, v)
			}
		}
		if len(s.Name) > 64 || !bytes.HasPrefix(b[at+56:at+120], []byte(s.Name)) || bytes.IndexByte([]byte(s.Name), 0) >= 0 {
			t.Fatalf("slot %d: name %q", s.Index, s.Name)
		}
		if ns := u64(b, at+48); !s.Updated.IsZero() && uint64(s.Updated.UnixNano()) != ns {
			t.Fatalf("slot %d: time %v of %d", s.Index, s.Updated, ns)
		}
	}
}

// FuzzParseName: a name that is accepted is the one the writer would use.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"tt_device_0_memory", "tt_device_18446744073709551615_memory", "tt_device_01_memory", "tt_device__memory", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if id, ok := ParseName(name); ok && RegionName(id) != name {
			t.Fatalf("%q gave %d, which is %q", name, id, RegionName(id))
		}
	})
}
