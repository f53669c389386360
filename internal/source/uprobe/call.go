package uprobe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// maxCodeBytes is how much code is searched for calls at most.
const maxCodeBytes = 64 << 20

const relocationBytes = 24

// stubs finds where functions are watched that are to be watched at their calls
// (metalabi.AtCall), by their own addresses: the pieces of code through which the
// library calls them by way of the dynamic linker. Of a function that is made from a
// template several libraries have a copy, and the dynamic linker takes the first for
// all of them: the one in this library may never run. At the stub arguments are where
// they are at the function.
func (f *elfFile) stubs(all []symbol) (map[uint64]uint64, error) {
	functions := map[uint32]uint64{} // their addresses, by number
	for _, want := range symbols {
		for i := range all {
			if want.need == metalabi.AtCall && strings.HasPrefix(all[i].name, want.prefix) {
				functions[all[i].number] = all[i].address
			}
		}
	}
	if f.calls == 0 || len(functions) == 0 || f.callBytes > maxSymbols*relocationBytes {
		return nil, nil // all calls are direct ones
	}
	slots := map[uint64]uint64{} // functions, by where the linker writes the address of the copy that it takes
	le := binary.LittleEndian
	err := f.pieces(f.calls, f.callBytes/relocationBytes*relocationBytes, relocationBytes, func(_ uint64, b []byte) error {
		for ; len(b) >= relocationBytes; b = b[relocationBytes:] {
			if function, ok := functions[elf.R_SYM64(le.Uint64(b[8:]))]; ok {
				slots[le.Uint64(b)] = function
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f.findStubs(slots)
}

// findStubs finds the stubs of slots, by the functions that these are of.
func (f *elfFile) findStubs(slots map[uint64]uint64) (map[uint64]uint64, error) {
	found := map[uint64]uint64{}
	for _, s := range f.segments {
		if !s.code {
			continue
		}
		err := f.pieces(s.address, min(s.bytes, maxCodeBytes), stubBytes, func(at uint64, b []byte) error {
			if len(found) == len(slots) {
				return errFound
			}
			for address := s.address + at; len(b) >= stubBytes; b, address = b[stubBytes:], address+stubBytes {
				slot, ok := stub(b[:stubBytes], address)
				if function, wanted := slots[slot]; ok && wanted {
					found[function] = address
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errFound) {
			return nil, err
		}
	}
	return found, nil
}

// errFound ends a search.
var errFound = errors.New("all are found")

// stubBytes is the size of a stub, and what its address is a multiple of.
const stubBytes = 16

// stubAMD64 reads a stub: a jump to the address that is in its slot, behind what the
// linker puts before it.
func stubAMD64(code []byte, address uint64) (slot uint64, ok bool) {
	at := 0
	for _, before := range []struct {
		code  []byte
		bytes int
	}{{[]byte{0xf3, 0x0f, 0x1e, 0xfa}, 4}, {[]byte{0x41, 0xbb}, 6}, {[]byte{0xf2}, 1}} { // endbr64; mov $n,%r11d; bnd
		if bytes.HasPrefix(code[at:], before.code) {
			at += before.bytes
		}
	}
	if len(code) < at+6 || code[at] != 0xff || code[at+1] != 0x25 {
		return 0, false
	}
	return address + uint64(at) + 6 + uint64(int64(int32(binary.LittleEndian.Uint32(code[at+2:])))), true
}

// stubARM64 reads a stub: adrp x16, and ldr x17 from there, which is the slot.
func stubARM64(code []byte, address uint64) (slot uint64, ok bool) {
	adrp, ldr := binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[4:])
	if adrp&0x9f00001f != 0x90000010 || ldr&0xffc003ff != 0xf9400211 {
		return 0, false
	}
	pages := int64(int32(adrp<<8)>>13)<<2 | int64(adrp>>29&3)
	return address&^0xfff + uint64(pages<<12) + uint64(ldr>>10&0xfff)*8, true
}
