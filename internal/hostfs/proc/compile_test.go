package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// compiler is a program that takes a while, as a compiler does.
const compiler = "#!/bin/sh\ni=0; while [ $i -lt 40000 ]; do i=$((i+1)); done\n"

// startShell runs a script in a directory with a compiler, until the test ends.
func startShell(t *testing.T, script string) (pid int) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"riscv-tt-elf-g++", "tool"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(compiler), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestCompiling: a process that has compilers run, itself or through a shell, is compiling
// until none ran for a while.
func TestCompiling(t *testing.T) {
	for name, script := range map[string]string{
		"itself":        "while :; do ./riscv-tt-elf-g++; done",
		"in a shell":    "while :; do sh -c 'cd . && ./riscv-tt-elf-g++ && true'; done",
		"in two shells": "while :; do sh -c 'sh -c \"./riscv-tt-elf-g++; true\"; true'; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pid := startShell(t, script)
			r := New(hostfs.Root{})
			defer r.Close()
			for r.Describe([]int{pid})[0].Condition != model.Compiling {
				time.Sleep(10 * time.Millisecond)
			}
			p := r.known[pid]
			p.compile.seenAt = p.statAt.Add(-compileHold)
			p.compile.children = 1 << 60 // nothing has grown
			if got := r.Describe([]int{pid})[0].Condition; got != "" {
				t.Errorf("long after the last compiler it is %q", got)
			}
		})
	}
}

// TestOtherChildren: children that are no compilers are none, however many end.
func TestOtherChildren(t *testing.T) {
	pid := startShell(t, "while :; do ./tool; done")
	r := New(hostfs.Root{})
	defer r.Close()
	for used := uint64(0); used < 20; used = r.known[pid].stat.ChildrenCPU {
		if got := r.Describe([]int{pid})[0].Condition; got != "" {
			t.Fatalf("it is %q", got)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestIsCompiler(t *testing.T) {
	for name, want := range map[string]bool{
		"riscv-tt-elf-g+": true, "riscv32-unknown": true, "cc1plus": true, "ccache": true,
		"riscv": false, "python3": false, "g++": false, "": false,
	} {
		t.Run(name, func(t *testing.T) {
			if isCompiler(name) != want {
				t.Errorf("%q: %v", name, !want)
			}
		})
	}
}

// TestManyThreads: the search for a compiler has a limit.
func TestManyThreads(t *testing.T) {
	tr := newTree(t, 0)
	dir := "proc/4242/task/"
	for tid := range maxCompileThreads {
		tr.write(dir+strconv.Itoa(10000+tid)+"/children", strings.Repeat("77 ", 10))
	}
	tr.write("proc/77/comm", "sh\n")
	tr.write("proc/77/task/77/children", strings.Repeat("77 ", 100)) // its own child: a tree that has no end
	tr.addProcess(4242, "python3", statTail, "python3\x00", "0::/\n")
	r := tr.reader()
	r.Describe([]int{4242})
	p, err := r.Process(4242)
	if err != nil {
		t.Fatal(err)
	}
	if p.hasCompiler() {
		t.Error("a shell is no compiler")
	}
}
