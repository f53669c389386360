package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Stat is the part of /proc/<pid>/stat that we use. Times are in clock ticks.
type Stat struct {
	Comm  []byte // in the caller's buffer
	State byte   // R, S, D, Z, T, …
	TTY   uint64 // number of its terminal; 0: none
	PPID  int
	Flags uint64 // PF_*
	CPU   uint64 // utime + stime, of living and joined threads
	// ChildrenCPU is the processor time of children that have ended and were waited for.
	ChildrenCPU uint64
	Threads     int
	Start       uint64 // after boot
	// Size is the size of its address space in bytes: mapping something changes it.
	Size uint64
	// Stack is where its stack begins: an exec makes another one. 0 where the
	// kernel does not say.
	Stack uint64
	// Exit is the wait status of a process that is Gone. The kernel shows it only
	// to processes that may trace it.
	Exit      int
	ExitKnown bool
}

const pfKthread = 0x00200000

// KernelThread reports whether it is a kernel thread.
func (s *Stat) KernelThread() bool { return s.Flags&pfKthread != 0 }

// Gone reports whether the process has exited and waits for its parent to reap
// it. A zombie that still has other threads is a running process whose first
// thread has exited.
func (s *Stat) Gone() bool {
	return (s.State == 'Z' || s.State == 'X') && s.Threads <= 1
}

// ErrForm means that a text is not a stat file.
var ErrForm = errors.New("not in the form of /proc/<pid>/stat")

// ReadStat reads the stat file of the process that has a pid now. It needs no
// Reader; use one to read processes repeatedly.
func ReadStat(root hostfs.Root, pid int) (Stat, error) {
	b, err := root.Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(b)
	if err != nil {
		return Stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return s, nil
}

// ParseStat reads "pid (comm) state ppid …". The name may hold blanks, line
// breaks and parentheses; the last ")" ends it.
func ParseStat(b []byte) (s Stat, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || end+2 >= len(b) {
		return s, ErrForm
	}
	s.Comm = b[open+1 : end]
	var utime, stime, cutime, cstime, ppid, threads, exit uint64
	n := 3 // the first field after the name, counted as in proc(5)
	for field := range bytes.FieldsSeq(b[end+1:]) {
		var dst *uint64
		switch n {
		case 3:
			s.State = field[0]
		case 4:
			dst = &ppid
		case 7:
			dst = &s.TTY
		case 9:
			dst = &s.Flags
		case 14:
			dst = &utime
		case 15:
			dst = &stime
		case 16:
			dst = &cutime
		case 17:
			dst = &cstime
		case 20:
			dst = &threads
		case 22:
			dst = &s.Start
		case 23:
			dst = &s.Size
		case 28:
			dst = &s.Stack
		case 52:
			dst = &exit
		}
		if dst != nil {
			v, ok := parseUint(field)
			if !ok {
				return Stat{}, ErrForm
			}
			*dst = v
		}
		if n++; n > 52 || n > 28 && s.State != 'Z' && s.State != 'X' {
			break
		}
	}
	if n <= 22 {
		return Stat{}, ErrForm
	}
	// Where it may not be read the kernel writes 0 here, and for the addresses of
	// the stack: a zombie has none, so a 0 may be either.
	s.Exit, s.ExitKnown = int(exit), exit != 0 && exit <= 0xffff
	s.CPU, s.ChildrenCPU, s.PPID, s.Threads = utime+stime, cutime+cstime, int(ppid), int(threads)
	return s, nil
}

// parseUint parses a decimal number without allocating a string.
func parseUint(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := v*10 + uint64(c-'0')
		if v > (1<<64-1)/10 || next < v {
			return 0, false
		}
		v = next
	}
	return v, true
}
