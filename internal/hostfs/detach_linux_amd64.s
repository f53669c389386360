#include "textflag.h"

#define SYS_close 3
#define SYS_pread64 17
#define SYS_clone 56
#define SYS_exit 60
#define SYS_chdir 80
#define SYS_openat 257
#define SYS_close_range 436

// func cloneReader(flags, stack uintptr, pidfd *int32, entries *entry, n int, shut *fdRange, m int) int
//
// The child may use neither the Go stack nor g: it keeps to registers.
TEXT ·cloneReader(SB), NOSPLIT, $0-64
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	MOVQ	pidfd+16(FP), DX
	MOVQ	entries+24(FP), R12
	MOVQ	n+32(FP), R13
	MOVQ	shut+40(FP), BX
	MOVQ	m+48(FP), R9
	XORL	R10, R10
	XORL	R8, R8
	MOVQ	$SYS_clone, AX
	SYSCALL
	TESTQ	AX, AX
	JZ	child
	MOVQ	AX, ret+56(FP)
	RET

child:
	// Close what is not to be read: whoever waits for its end must see it.
	TESTQ	R9, R9
	JZ	stdio
	MOVL	0(BX), DI // first
	MOVL	4(BX), SI // last
	XORL	DX, DX
	MOVQ	$SYS_close_range, AX
	SYSCALL
	ADDQ	$8, BX
	DECQ	R9
	JMP	child

stdio:
	// Kernels before 5.9 do not know close_range.
	XORL	DI, DI
	MOVQ	$SYS_close, AX
	SYSCALL
	MOVQ	$1, DI
	MOVQ	$SYS_close, AX
	SYSCALL
	MOVQ	$2, DI
	MOVQ	$SYS_close, AX
	SYSCALL

next:
	TESTQ	R13, R13
	JZ	done
	MOVQ	40(R12), DI // dir
	TESTQ	DI, DI
	JZ	open
	MOVQ	$SYS_chdir, AX
	SYSCALL
	MOVQ	AX, R9 // 0, as at first, or why no file of it can be opened

open:
	MOVQ	0(R12), BX  // fd, or flags
	MOVQ	48(R12), SI // name
	TESTQ	SI, SI
	JZ	read
	MOVQ	R9, AX
	TESTQ	AX, AX
	JNZ	unopened
	MOVQ	$-100, DI // AT_FDCWD
	MOVQ	BX, DX
	XORL	R10, R10
	MOVQ	$SYS_openat, AX
	SYSCALL
	TESTQ	AX, AX
	JS	unopened
	MOVQ	AX, BX

read:
	MOVQ	BX, DI
	MOVQ	8(R12), SI  // buf
	MOVQ	16(R12), DX // size
	MOVQ	24(R12), R10 // offset
	MOVQ	$SYS_pread64, AX
	SYSCALL
	MOVQ	AX, 32(R12) // result
	CMPQ	48(R12), $0
	JEQ	step
	MOVQ	BX, DI
	MOVQ	$SYS_close, AX
	SYSCALL
	JMP	step

unopened:
	MOVQ	$1, 56(R12)
	MOVQ	AX, 32(R12) // result, last

step:
	ADDQ	$64, R12
	DECQ	R13
	JMP	next

done:
	XORL	DI, DI
	MOVQ	$SYS_exit, AX
	SYSCALL
	INT	$3 // not reached
