package uprobe

import "debug/elf"

const machine = elf.EM_AARCH64

// entry accepts every instruction: the kernel refuses loudly what it cannot
// step over.
func entry([]byte) (skip uint64, ok bool) { return 0, true }

func functionExits(code []byte) (exits, bool) { return exitsARM64(code) }

func stub(code []byte, address uint64) (slot uint64, ok bool) { return stubARM64(code, address) }

func getter(code []byte) (field, bool) { return getterARM64(code) }
