package uprobe

import "debug/elf"

const machine = elf.EM_X86_64

func entry(code []byte) (skip uint64, ok bool) { return entryAMD64(code) }

func functionExits(code []byte) (exits, bool) { return exitsAMD64(code) }

func getter(code []byte) (field, bool) { return getterAMD64(code) }
