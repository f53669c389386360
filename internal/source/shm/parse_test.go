package shm

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/model"
)

// image is a region under construction, for tests.
type image []byte

func newImage(version uint32, id uint64) image {
	b := make(image, Size)
	b.put32(offVersion, version)
	b.put64(offChipID, id)
	b.put64(offUpdated, 1_700_000_000_000_000_000)
	for i := range numChips {
		b.put32(offChips+i*chipSize, 0xFFFFFFFF)
	}
	if version == 4 {
		b.put32(offInitState, ready)
	}
	return b
}

func (b image) put32(at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func (b image) put64(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

func (b image) slot(i int, pid int32, name string, at time.Time, bytes ...uint64) image {
	s := offSlots + i*slotSize
	b.put32(s+slotPID, uint32(pid))
	for p, v := range bytes {
		b.put64(s+slotBytes+8*p, v)
	}
	if !at.IsZero() {
		b.put64(s+slotUpdated, uint64(at.UnixNano()))
	}
	copy(b[s+slotName:s+slotSize], name)
	return b
}

// TestParseAfter: what a region was before is in nothing that is parsed of it now.
func TestParseAfter(t *testing.T) {
	at := time.Unix(1_790_000_000, 42)
	before := newImage(3, 1).slot(0, 7, "python", at).slot(5, 8, "worker", at).slot(9, 9, "gone", at)
	for _, c := range []struct {
		name string
		now  image
	}{
		{"the same", before},
		{"another name", newImage(3, 1).slot(0, 7, "python3", at).slot(5, 8, "work", at)},
		{"other slots", newImage(3, 1).slot(1, 7, "python", at).slot(5, 10, "worker", at).slot(63, 8, "worker", at)},
		{"none", newImage(3, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := Parse(before)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Parse(c.now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseAfter(old, c.now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(Layout{})); diff != "" {
				t.Errorf("-alone +after another:\n%s", diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	at := time.Unix(1_790_000_000, 42)
	b := newImage(3, 4476187513037).
		slot(0, 7781, "python", at, 134217728, 2097152, 3, 4, 1351680).
		slot(63, 1, "a\xffb\n", time.Time{}, 0, 0, 0, 0, 1<<63)
	b.put32(offDeviceID, 5)
	b.put32(offRefs, 0xFFFFFFFF)
	b.put32(offActive, 2)
	b.put64(offTotals+8, 17)
	b.put32(offInitState, ready) // left by a layout 4 writer; layout 3 calls it padding

	got, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := &Image{
		Layout: layouts[2], ChipID: 4476187513037, DeviceID: 5,
		Updated: time.Unix(1_700_000_000, 0), Active: 2, Refs: 0xFFFFFFFF,
		Totals: [numPools]uint64{1: 17},
		Slots: []Slot{
			{Index: 0, PID: 7781, Name: "python", Updated: at, Bytes: [numPools]uint64{134217728, 2097152, 3, 4, 1351680}},
			{Index: 63, PID: 1, Name: "a\xffb\n", Bytes: [numPools]uint64{4: 1 << 63}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(Layout{})); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	uninitialised := newImage(4, 1)
	uninitialised.put32(offInitState, 0)
	inProgress := newImage(4, 1)
	inProgress.put32(offInitState, 1)
	tests := []struct {
		name    string
		b       []byte
		initial bool
		version uint32
	}{
		{name: "empty", b: nil, initial: true},
		{name: "one byte short", b: newImage(3, 1)[:Size-1], initial: true},
		{name: "zero-filled", b: make([]byte, Size), initial: true},
		{name: "layout 4 not initialised", b: uninitialised, initial: true},
		{name: "layout 4 in progress", b: inProgress, initial: true},
		{name: "layout 5", b: newImage(5, 1), version: 5},
		{name: "garbage version", b: newImage(0xDEADBEEF, 1), version: 0xDEADBEEF},
		{name: "prototype that also said 1", b: append(newImage(1, 1), make([]byte, 640)...), version: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			img, err := Parse(tt.b)
			if img != nil {
				t.Errorf("got an image: %+v", img)
			}
			if got := errors.Is(err, ErrInitialising); got != tt.initial {
				t.Errorf("initialising %v, want %v: %v", got, tt.initial, err)
			}
			unknown, ok := errors.AsType[*UnknownLayoutError](err)
			if ok != (tt.version != 0) || ok && unknown.Version != tt.version {
				t.Errorf("got error %v, want unknown layout %d", err, tt.version)
			}
		})
	}
}

func TestParseVersions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version uint32
		cb      model.CBMeaning
	}{{"v1", 1, model.CBCached}, {"v2", 2, model.CBCached}, {"v3", 3, model.CBCached}, {"v4", 4, model.CBResident}} {
		t.Run(tt.name, func(t *testing.T) {
			b := newImage(tt.version, 9).slot(2, -1, "x", time.Time{}, 5).slot(3, 12, "y", time.Time{}, 6)
			img, err := Parse(b)
			if err != nil {
				t.Fatalf("version %d: %v", tt.version, err)
			}
			if img.Layout.CB != tt.cb {
				t.Errorf("version %d: CB means %q, want %q", tt.version, img.Layout.CB, tt.cb)
			}
			if len(img.Slots) != 1 || img.Slots[0].PID != 12 {
				t.Errorf("version %d: slots %+v, want only pid 12", tt.version, img.Slots)
			}
			// Only layout 4 marks slots with −1; no other writer stores it.
			if want := tt.version != 4; (img.Odd == 1) != want {
				t.Errorf("version %d: %d odd slots, want one: %v", tt.version, img.Odd, want)
			}
		})
	}
}

func TestNameWithoutNUL(t *testing.T) {
	long := "0123456789012345678901234567890123456789012345678901234567890123"
	b := newImage(3, 1).slot(0, 3, long, time.Time{}).slot(1, 4, "next", time.Time{})
	img, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if img.Slots[0].Name != long || img.Slots[1].Name != "next" {
		t.Errorf("names %q, %q", img.Slots[0].Name, img.Slots[1].Name)
	}
}

func TestParseName(t *testing.T) {
	tests := map[string]struct {
		id uint64
		ok bool
	}{
		"tt_device_0_memory":                      {0, true},
		"tt_device_4476187513037_memory":          {4476187513037, true},
		"tt_device_18446744073709551615_memory":   {18446744073709551615, true},
		"tt_device_18446744073709551616_memory":   {},
		"tt_device_01_memory":                     {},
		"tt_device_+1_memory":                     {},
		"tt_device_-1_memory":                     {},
		"tt_device__memory":                       {},
		"tt_device_memory":                        {},
		"tt_device_1_memory ":                     {},
		"tt_device_0x1_memory":                    {},
		"tt_device_1_util":                        {},
		"tt_device_1_memory/../x":                 {},
		"Xtt_device_1_memory":                     {},
		"TT_UMD_LOCK.CHIP_IN_USE_0_PCIe":          {},
		"tt_device_1_000_memory":                  {},
		"tt_device_1_memorytt_device_1_memory":    {},
		"tt_device_\xc2\xb21_memory":              {},
		"tt_device_1844674407370955161511_memory": {},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			id, ok := ParseName(name)
			if id != want.id || ok != want.ok {
				t.Errorf("ParseName(%q) = %d, %v, want %d, %v", name, id, ok, want.id, want.ok)
			}
			if ok && RegionName(id) != name {
				t.Errorf("RegionName(%d) = %q, want %q", id, RegionName(id), name)
			}
		})
	}
}
