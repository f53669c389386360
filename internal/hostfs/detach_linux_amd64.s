#include "textflag.h"

#define SYS_close 3
#define SYS_pread64 17
#define SYS_clone 56
#define SYS_exit 60

// func cloneReader(flags, stack uintptr, pidfd *int32, entries *entry, n int) int
//
// The child may use neither the Go stack nor g: it keeps to registers.
TEXT ·cloneReader(SB), NOSPLIT, $0-48
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	MOVQ	pidfd+16(FP), DX
	MOVQ	entries+24(FP), R12
	MOVQ	n+32(FP), R13
	XORL	R10, R10
	XORL	R8, R8
	MOVQ	$SYS_clone, AX
	SYSCALL
	TESTQ	AX, AX
	JZ	child
	MOVQ	AX, ret+40(FP)
	RET

child:
	// Close stdin, stdout, stderr: whoever reads our output must see its end.
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
	MOVQ	0(R12), DI  // fd
	MOVQ	8(R12), SI  // buf
	MOVQ	16(R12), DX // size
	MOVQ	24(R12), R10 // offset
	MOVQ	$SYS_pread64, AX
	SYSCALL
	MOVQ	AX, 32(R12) // result
	ADDQ	$40, R12
	DECQ	R13
	JMP	next

done:
	XORL	DI, DI
	MOVQ	$SYS_exit, AX
	SYSCALL
	INT	$3 // not reached
