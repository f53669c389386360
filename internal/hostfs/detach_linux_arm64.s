#include "textflag.h"

#define SYS_close 57
#define SYS_pread64 67
#define SYS_exit 93
#define SYS_clone 220

// func cloneReader(flags, stack uintptr, pidfd *int32, entries *entry, n int) int
//
// The child may use neither the Go stack nor g: it keeps to registers.
TEXT ·cloneReader(SB), NOSPLIT, $0-48
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	pidfd+16(FP), R2
	MOVD	entries+24(FP), R19
	MOVD	n+32(FP), R20
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$SYS_clone, R8
	SVC
	CBZ	R0, child
	MOVD	R0, ret+40(FP)
	RET

child:
	// Close stdin, stdout, stderr: whoever reads our output must see its end.
	MOVD	$SYS_close, R8
	MOVD	ZR, R0
	SVC
	MOVD	$1, R0
	SVC
	MOVD	$2, R0
	SVC

next:
	CBZ	R20, done
	MOVD	0(R19), R0  // fd
	MOVD	8(R19), R1  // buf
	MOVD	16(R19), R2 // size
	MOVD	24(R19), R3 // offset
	MOVD	$SYS_pread64, R8
	SVC
	ADD	$32, R19, R1
	STLR	R0, (R1)    // result, after the bytes
	ADD	$40, R19
	SUB	$1, R20
	B	next

done:
	MOVD	ZR, R0
	MOVD	$SYS_exit, R8
	SVC
	BRK	$0 // not reached
