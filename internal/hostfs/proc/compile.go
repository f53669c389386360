package proc

import (
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// compileMeter finds out whether a process waits for compilers that it has started, as
// tt-metal does before a kernel runs for the first time. The kernel adds the processor
// time of a child to its parent when the child has ended: only where that grows, or a
// compiler was seen a moment ago, are the children themselves read.
type compileMeter struct {
	known    bool
	children uint64 // processor time of ended children, in clock ticks
	seenAt   time.Time
}

// compileHold is how long after a compiler was seen a process is still compiling: a
// program has hundreds of kernels, each of which takes less than a second or two.
const compileHold = 3 * time.Second

// compiles reports whether a process is compiling.
func (m *compileMeter) compiles(p *Process) bool {
	recent := p.statAt.Sub(m.seenAt) < compileHold
	if grew := m.known && p.stat.ChildrenCPU > m.children; (grew || recent) && p.hasCompiler() {
		m.seenAt, recent = p.statAt, true
	}
	m.known, m.children = true, p.stat.ChildrenCPU
	return recent
}

// Bounds of the search for a compiler: a program may have thousands of threads.
const (
	maxCompileThreads  = 256
	maxCompileChildren = 64
	maxCompileDepth    = 3 // thread → shell → ccache → compiler
)

// hasCompiler reports whether a compiler runs below a process.
func (p *Process) hasCompiler() bool {
	tasks, err := p.dir.OpenDir("task")
	if err != nil {
		return false
	}
	defer tasks.Close()
	proc, err := p.dir.OpenDir("..")
	if err != nil {
		return false
	}
	defer proc.Close()
	var buf [4096]byte
	found, threads, left := false, 0, maxCompileChildren
	_ = tasks.Each(buf[:], func(tid []byte) bool {
		found = compilerBelow(proc, tasks, string(tid), maxCompileDepth, &left)
		threads++
		return !found && left > 0 && threads < maxCompileThreads
	})
	return found
}

// compilerBelow reports whether a child of a thread is a compiler, or has one below it.
// A shell that starts one has a single thread.
func compilerBelow(proc, tasks hostfs.Dir, tid string, depth int, left *int) bool {
	var list, name [512]byte
	n, err := tasks.Read(tid+"/children", list[:])
	if err != nil || depth == 0 {
		return false
	}
	for pid := range strings.FieldsSeq(string(list[:n])) {
		if *left--; *left < 0 {
			return false
		}
		if n, err := proc.Read(pid+"/comm", name[:]); err == nil && isCompiler(strings.TrimSpace(string(name[:n]))) {
			return true
		}
		if child, err := proc.OpenDir(pid + "/task"); err == nil {
			found := compilerBelow(proc, child, pid, depth-1, left)
			child.Close()
			if found {
				return true
			}
		}
	}
	return false
}

// isCompiler reports whether a program of that name is a compiler, or a part of one. The
// kernel keeps 15 characters of a name: tt-metal's are riscv-tt-elf-g++ and, earlier,
// riscv32-unknown-elf-g++.
func isCompiler(name string) bool {
	switch name {
	case "ccache", "cc1", "cc1plus", "collect2", "lto1", "lto-wrapper":
		return true
	}
	machine, _, ok := strings.Cut(name, "-")
	return ok && strings.HasPrefix(machine, "riscv")
}
