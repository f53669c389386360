package chipread

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule allows a system call if all conditions hold. Several rules of one call
// are alternatives.
type rule struct {
	call uint32
	when []condition
}

// condition holds if the masked low half of an argument has a value.
type condition struct {
	argument    uint32
	mask, value uint32
}

func is(argument uint32, value uint32) condition { return condition{argument, 0xFFFF_FFFF, value} }

// allowed lists the calls of a reader: those that reach the chip, with their
// arguments, and those that Go's runtime cannot do without. A way that opens no
// node may open nothing at all.
func allowed(opensNode bool) []rule {
	const prot, flags = 2, 3 // arguments of mmap
	list := []rule{
		{unix.SYS_MMAP, []condition{{prot, unix.PROT_WRITE | unix.PROT_EXEC, 0}}},
		{unix.SYS_MUNMAP, nil},
		{unix.SYS_PREAD64, nil}, // the heartbeat
		{unix.SYS_WRITE, []condition{is(0, 1)}},
		{unix.SYS_CLOSE, nil},
		{unix.SYS_EXIT_GROUP, nil},
		// Go's runtime: its heap, threads, signals and clock.
		{unix.SYS_MMAP, []condition{{prot, unix.PROT_EXEC, 0}, {flags, unix.MAP_ANONYMOUS, unix.MAP_ANONYMOUS}}},
		{unix.SYS_MADVISE, nil},
		{unix.SYS_FUTEX, nil},
		{unix.SYS_NANOSLEEP, nil},
		{unix.SYS_CLOCK_GETTIME, nil},
		{unix.SYS_SCHED_YIELD, nil},
		{unix.SYS_EPOLL_PWAIT, nil},
		{unix.SYS_WRITE, []condition{is(2, 8)}}, // to wake its poller
		{unix.SYS_GETTID, nil},
		{unix.SYS_GETPID, nil},
		{unix.SYS_TGKILL, []condition{is(0, uint32(os.Getpid()))}},
		{unix.SYS_RT_SIGRETURN, nil},
		{unix.SYS_RT_SIGPROCMASK, nil},
		{unix.SYS_SIGALTSTACK, nil},
		{unix.SYS_RESTART_SYSCALL, nil},
		{unix.SYS_CLONE, []condition{{0, unix.CLONE_THREAD, unix.CLONE_THREAD}}},
		{unix.SYS_PRCTL, []condition{is(0, unix.PR_SET_VMA)}},
		{unix.SYS_EXIT, nil},
	}
	if opensNode {
		list = append(list, rule{unix.SYS_OPENAT, []condition{is(2, nodeFlags)}})
		for _, request := range []uint32{getDeviceInfo, allocateTLB, configureTLB, freeTLB} {
			list = append(list, rule{unix.SYS_IOCTL, []condition{is(1, request)}})
		}
	}
	return list
}

// Offsets in struct seccomp_data.
const (
	dataCall      = 0
	dataArch      = 4
	dataArguments = 16
)

// auditArch is the number of this architecture in seccomp_data; 0: there is no list
// of calls for it.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// filter is the list as the kernel takes it. What is not on it ends the process.
func filter(rules []rule) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	give := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	unless := func(value uint32, skip int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: uint8(skip)}
	}
	program := []unix.SockFilter{load(dataArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch(), Jt: 1}, give(unix.SECCOMP_RET_KILL_PROCESS)}
	for _, r := range rules {
		rest := 3*len(r.when) + 1
		program = append(program, load(dataCall), unless(r.call, rest))
		for i, c := range r.when {
			program = append(program, load(dataArguments+8*c.argument),
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask},
				unless(c.value, rest-3*(i+1)))
		}
		program = append(program, give(unix.SECCOMP_RET_ALLOW))
	}
	return append(program, give(unix.SECCOMP_RET_KILL_PROCESS))
}

// confine gives up every capability, and every system call but those that
// reading the chip takes. The calling goroutine must be locked to its thread.
func confine(opensNode bool) error {
	if auditArch() == 0 {
		return fmt.Errorf("no list of system calls for %s", runtime.GOARCH)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	program := filter(allowed(opensNode))
	list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&list)))
	runtime.KeepAlive(program)
	if e != 0 {
		return fmt.Errorf("limiting system calls: %w", e)
	}
	return nil
}

func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errors.Is(e, syscall.ENOTSUP) { // built with cgo: this thread, the one that reads
		return unix.Capset(&head, &none[0])
	}
	if e != 0 {
		return e
	}
	return nil
}
