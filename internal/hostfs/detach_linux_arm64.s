#include "textflag.h"

#define SYS_chdir 49
#define SYS_openat 56
#define SYS_close 57
#define SYS_pread64 67
#define SYS_exit 93
#define SYS_clone 220
#define SYS_close_range 436

// func cloneReader(flags, stack uintptr, pidfd *int32, entries *entry, n int, shut *fdRange, m int) int
//
// The child may use neither the Go stack nor g: it keeps to registers.
TEXT ·cloneReader(SB), NOSPLIT, $0-64
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	pidfd+16(FP), R2
	MOVD	entries+24(FP), R19
	MOVD	n+32(FP), R20
	MOVD	shut+40(FP), R21
	MOVD	m+48(FP), R22
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$SYS_clone, R8
	SVC
	CBZ	R0, child
	MOVD	R0, ret+56(FP)
	RET

child:
	// Close what is not to be read: whoever waits for its end must see it.
	CBZ	R22, stdio
	MOVWU	0(R21), R0 // first
	MOVWU	4(R21), R1 // last
	MOVD	ZR, R2
	MOVD	$SYS_close_range, R8
	SVC
	ADD	$8, R21
	SUB	$1, R22
	B	child

stdio:
	// Kernels before 5.9 do not know close_range.
	MOVD	$SYS_close, R8
	MOVD	ZR, R0
	SVC
	MOVD	$1, R0
	SVC
	MOVD	$2, R0
	SVC

next:
	CBZ	R20, done
	MOVD	40(R19), R0 // dir
	CBZ	R0, open
	MOVD	$SYS_chdir, R8
	SVC
	MOVD	R0, R22 // 0, as at first, or why no file of it can be opened

open:
	MOVD	0(R19), R21  // fd, or flags
	MOVD	48(R19), R23 // name
	CBZ	R23, read
	MOVD	R22, R0
	CBNZ	R0, unopened
	MOVD	$-100, R0 // AT_FDCWD
	MOVD	R23, R1
	MOVD	R21, R2
	MOVD	ZR, R3
	MOVD	$SYS_openat, R8
	SVC
	TBNZ	$63, R0, unopened
	MOVD	R0, R21

read:
	MOVD	R21, R0
	MOVD	8(R19), R1  // buf
	MOVD	16(R19), R2 // size
	MOVD	24(R19), R3 // offset
	MOVD	$SYS_pread64, R8
	SVC
	ADD	$32, R19, R1
	STLR	R0, (R1)    // result, after the bytes
	CBZ	R23, step
	MOVD	R21, R0
	MOVD	$SYS_close, R8
	SVC
	B	step

unopened:
	MOVD	$1, R2
	MOVD	R2, 56(R19)
	ADD	$32, R19, R1
	STLR	R0, (R1)    // result, last

step:
	ADD	$64, R19
	SUB	$1, R20
	B	next

done:
	MOVD	ZR, R0
	MOVD	$SYS_exit, R8
	SVC
	BRK	$0 // not reached
