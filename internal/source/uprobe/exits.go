package uprobe

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// maxFunction is the largest function whose ends are looked for.
const maxFunction = 16 << 10

// exits are where a function ends, in bytes from its beginning: returns, and
// where an exception, or a jump to another function, leaves it.
type exits struct{ returns, leaves []uint64 }

// exitsAMD64 finds the ends of a function. A return probe of the kernel would put
// an address of its own on the stack, at which an exception ends the program; so
// the instructions with which the function ends are watched instead. An
// instruction in the middle of a function must be one for certain: these are
// found by what surrounds them.
//
//   - What the function saves first, it restores last, in the opposite order: the
//     first of those instructions is watched.
//   - A function that exceptions pass through ends with a call that resumes them.
//     Every call of the same function is watched.
func exitsAMD64(code []byte) (e exits, ok bool) {
	restore := restoreAMD64(code)
	if len(restore) < 3 {
		return exits{}, false
	}
	for at := 0; ; {
		k := bytes.Index(code[at:], restore)
		if k < 0 {
			break
		}
		begin := at + k
		if begin > 0 && code[begin-1] == 0x41 && restore[0] != 0x41 {
			return exits{}, false // the second byte of pop r8…r15: a probe there would break the program
		}
		at = begin + len(restore)
		switch rest := code[at:]; {
		case bytes.HasPrefix(rest, []byte{0xc3}): // ret
			e.returns = append(e.returns, uint64(begin))
		case bytes.HasPrefix(rest, []byte{0xe9}), bytes.HasPrefix(rest, []byte{0xeb}), bytes.HasPrefix(rest, []byte{0xff}): // jmp
			e.leaves = append(e.leaves, uint64(begin))
		}
	}
	if len(e.returns) == 0 {
		return exits{}, false
	}
	if resume, found := callAMD64(code, len(code)-5); found {
		for at := range code {
			if to, is := callAMD64(code, at); is && to == resume {
				e.leaves = append(e.leaves, uint64(at))
			}
		}
	}
	slices.Sort(e.leaves)
	return e, true
}

// restoreAMD64 are the instructions that restore the registers that a function
// saves at its beginning.
func restoreAMD64(code []byte) (restore []byte) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) { // endbr64
		code = code[4:]
	}
	for {
		switch {
		case len(code) > 1 && code[0] == 0x41 && code[1] >= 0x54 && code[1] <= 0x57: // push r12…r15
			restore = append([]byte{0x41, code[1] + 8}, restore...)
			code = code[2:]
		case len(code) > 0 && (code[0] == 0x53 || code[0] == 0x55): // push rbx, rbp
			restore = append([]byte{code[0] + 8}, restore...)
			code = code[1:]
		case len(code) > 0 && code[0] == 0x50: // push rax, for the stack's alignment
			code = code[1:]
		case bytes.HasPrefix(code, []byte{0x48, 0x89, 0xe5}): // mov %rsp,%rbp
			code = code[3:]
		default:
			return restore
		}
	}
}

// callAMD64 is what a call at an offset calls, from the function's beginning.
func callAMD64(code []byte, at int) (to int64, ok bool) {
	if at < 0 || at+5 > len(code) || code[at] != 0xe8 {
		return 0, false
	}
	return int64(at) + 5 + int64(int32(binary.LittleEndian.Uint32(code[at+1:]))), true
}

// exitsARM64 is the same where every instruction has four bytes.
func exitsARM64(code []byte) (e exits, ok bool) {
	const ret, call, calls = 0xd65f03c0, 0x94000000, 0xfc000000
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(code[at:]) }
	target := func(at int) int64 { return int64(at) + int64(int32(word(at)<<6)>>4) }
	last := len(code)/4*4 - 4
	for at := 0; at <= last; at += 4 {
		switch w := word(at); {
		case w == ret:
			e.returns = append(e.returns, uint64(at))
		case w&calls == call && word(last)&calls == call && target(at) == target(last):
			e.leaves = append(e.leaves, uint64(at))
		}
	}
	return e, len(e.returns) > 0
}

// exits finds where a function of the file ends, as offsets in the file.
func (f *elfFile) exits(s *symbol) (e exits, ok bool) {
	if s.size == 0 || s.size > maxFunction {
		return exits{}, false
	}
	code := make([]byte, s.size)
	n, offset, _ := f.readCode(code, s.address)
	if n < len(code) {
		return exits{}, false
	}
	e, ok = functionExits(code)
	for _, list := range [][]uint64{e.returns, e.leaves} {
		for i := range list {
			list[i] += offset
		}
	}
	return e, ok
}
