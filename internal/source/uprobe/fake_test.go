package uprobe

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
)

// fake is a program that allocates, and its library; see testdata/fake.
func fake(t testing.TB) (program, library string) {
	t.Helper()
	program, library, err := programs.Allocating(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program, library
}

// workload is a running fake program.
type workload struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	pid int
}

func startFake(t testing.TB, cmd *exec.Cmd) *workload {
	t.Helper()
	w := &workload{t: t, cmd: cmd}
	var err error
	if w.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	w.pid = cmd.Process.Pid
	w.answer()
	return w
}

func (w *workload) end() {
	w.in.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// do gives a command and returns its answer.
func (w *workload) do(format string, args ...any) string {
	w.t.Helper()
	if _, err := fmt.Fprintf(w.in, format+"\n", args...); err != nil {
		w.t.Fatal(err)
	}
	return w.answer()
}

func (w *workload) answer() string {
	w.t.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// number is do for answers that are numbers.
func (w *workload) number(format string, args ...any) uint64 {
	w.t.Helper()
	n, err := strconv.ParseUint(w.do(format, args...), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// eventually waits for what happens soon, however busy the machine is.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to: %s", what)
		}
	}
}

// dram is the one list of a fake allocator.
func dram(t *testing.T, p *blocks.Process) *blocks.List {
	t.Helper()
	if len(p.Allocators) != 1 || len(p.Allocators[0].Lists) != 1 {
		t.Fatalf("not one allocator with one list: %+v", p)
	}
	return p.Allocators[0].Lists[0]
}

func find(t *testing.T, s *Source, pid int) *blocks.Process {
	t.Helper()
	p, ok := s.Find(pid)
	if !ok {
		t.Fatalf("process %d is not known", pid)
	}
	return p
}
