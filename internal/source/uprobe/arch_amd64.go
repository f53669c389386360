package uprobe

import "debug/elf"

const machine = elf.EM_X86_64

func entry(code []byte) (skip uint64, ok bool) { return entryAMD64(code) }

func functionExits(code []byte) (exits, bool) { return exitsAMD64(code) }

func stub(code []byte, address uint64) (slot uint64, ok bool) { return stubAMD64(code, address) }

func getter(code []byte) (field, bool) { return getterAMD64(code) }
