package uprobe

import (
	"bytes"
	"encoding/binary"

	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// field is where an object has a value: at an offset in it, or in what it has a
// pointer to.
type field struct {
	pointer uint16 // offset of the pointer; 0: the object itself has the value
	offset  uint16
}

// Releases before 0.79 do not export Buffer::size. There a Buffer has its page
// size and its size at these offsets, since June 2025.
var (
	oldBufferPage = field{offset: 0x58}
	oldBufferSize = field{offset: 0x18}
)

// bufferSize finds where a Buffer has its size, from the code of the library's own
// functions that return such values. Where it is not found, what buffers asked
// for is not known.
func (f *elfFile) bufferSize(all []symbol) (field, bool) {
	if size, ok := f.getter(all, "buffer_size"); ok {
		return size, true
	}
	page, ok := f.getter(all, "buffer_page")
	return oldBufferSize, ok && page == oldBufferPage
}

// getter reads the code of a function by internal/source/metalabi's name for it.
func (f *elfFile) getter(all []symbol, name string) (field, bool) {
	for i := range metalabi.Functions {
		if metalabi.Functions[i].Name != name {
			continue
		}
		s, err := the(metalabi.Functions[i].Prefix, all)
		if err != nil || s == nil {
			return field{}, false
		}
		var code [32]byte
		n, _, _ := f.readCode(code[:], s.address)
		return getter(code[:n])
	}
	return field{}, false
}

// getterAMD64 reads `mov offset(%rdi),%rax; ret`, or with a second
// `mov offset(%rax),%rax` between them.
func getterAMD64(code []byte) (field, bool) {
	code = bytes.TrimPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) // endbr64
	const ofThis, ofPointer, ret = 7, 0, 0xc3                     // %rdi, %rax
	first, code, ok := loadAMD64(code, ofThis)
	if !ok {
		return field{}, false
	}
	if len(code) > 0 && code[0] == ret {
		return field{offset: first}, true
	}
	second, code, ok := loadAMD64(code, ofPointer)
	return field{pointer: first, offset: second}, ok && first != 0 && len(code) > 0 && code[0] == ret
}

// loadAMD64 reads `mov offset(%base),%rax`.
func loadAMD64(code []byte, base byte) (offset uint16, rest []byte, ok bool) {
	if len(code) < 3 || code[0] != 0x48 || code[1] != 0x8b || code[2]&^0xc0 != base {
		return 0, nil, false
	}
	mode, code := code[2]>>6, code[3:]
	switch {
	case mode == 0:
		return 0, code, true
	case mode == 1 && len(code) >= 1 && code[0] < 0x80:
		return uint16(code[0]), code[1:], true
	case mode == 2 && len(code) >= 4:
		x := binary.LittleEndian.Uint32(code)
		return uint16(x), code[4:], x < 1<<15
	}
	return 0, nil, false
}

// getterARM64 reads `ldr x0,[x0,#offset]; ret`, or the same through a second
// register.
func getterARM64(code []byte) (field, bool) {
	const bti, ret = 0xd503245f, 0xd65f03c0
	var words []uint32
	for ; len(code) >= 4; code = code[4:] {
		words = append(words, binary.LittleEndian.Uint32(code))
	}
	if len(words) > 0 && words[0] == bti {
		words = words[1:]
	}
	if len(words) < 2 {
		return field{}, false
	}
	first, to, ok := loadARM64(words[0], 0)
	if !ok {
		return field{}, false
	}
	if to == 0 && words[1] == ret {
		return field{offset: first}, true
	}
	if len(words) < 3 {
		return field{}, false
	}
	second, last, ok := loadARM64(words[1], to)
	return field{pointer: first, offset: second}, ok && first != 0 && last == 0 && words[2] == ret
}

// loadARM64 reads `ldr to,[base,#offset]`.
func loadARM64(word, base uint32) (offset uint16, to uint32, ok bool) {
	if word&0xffc00000 != 0xf9400000 || word>>5&31 != base {
		return 0, 0, false
	}
	return uint16(word >> 10 & 0xfff * 8), word & 31, true
}
