package uprobe

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// pythonOffsets prints where a CPython has what the kernel's part walks through,
// by its own headers.
const pythonOffsets = `#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_interp.h>
#include <stdio.h>
#include <stddef.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#define THREADS threads.head
#define NAME co_qualname
#else
#include <frameobject.h>
#include <internal/pycore_code.h>
#define THREADS tstate_head
#define NAME co_name
#endif
int main(void)
{
	printf("%zu %zu %zu %zu %zu %zu %zu %zu\n", offsetof(_PyRuntimeState, interpreters.main), offsetof(PyInterpreterState, THREADS),
	       offsetof(PyThreadState, next), offsetof(PyThreadState, thread_id), offsetof(PyCodeObject, co_filename), offsetof(PyCodeObject, NAME),
	       offsetof(PyCodeObject, co_linetable), offsetof(PyCodeObject, co_firstlineno));
	return 0;
}
`

// TestPythonLayouts holds the offsets against the headers of the Pythons that are
// installed.
func TestPythonLayouts(t *testing.T) {
	cc, err := libtest.Compiler()
	if err != nil {
		t.Skip(err)
	}
	home, _ := os.UserHomeDir()
	tried := 0
	for minor, at := range pythonLayouts {
		var found []string
		for _, glob := range []string{"/usr/include/python3." + minor, "/usr/local/include/python3." + minor, filepath.Join(home, ".pyenv/versions/*/include/python3."+minor)} {
			more, _ := filepath.Glob(glob)
			found = append(found, more...)
		}
		for _, include := range found {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "o.c"), []byte(pythonOffsets), 0o644); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(dir, "o")
			if out, err := exec.Command(cc, "-I"+include, "-I"+include+"/internal", filepath.Join(dir, "o.c"), "-o", program).CombinedOutput(); err != nil {
				t.Logf("3.%s: its headers do not compile here: %v\n%.400s", minor, err, out)
				continue
			}
			out, err := exec.Command(program).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintln(at.Interpreter, at.Threads, at.Next, at.Self, at.File, at.Function, at.Lines, at.FirstLine)
			if string(out) != want {
				t.Errorf("3.%s in %s has %sthe table %s", minor, include, out, want)
			}
			tried++
		}
	}
	if tried == 0 {
		t.Skip("no Python's headers are installed")
	}
}

// written is a failure with lines, as the kernel's part writes it.
func written(frames ...watchFrame) []byte {
	x := watchFailed{Frames: uint64(len(frames))}
	x.Event.Kind = uint8(noRoom)
	copy(x.Frame[:], frames)
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(&x)), failedBytes)...)
}

func frameOf(line uint32, file, function string, wide uint8) (f watchFrame) {
	f.Line, f.FileBytes, f.FunctionBytes, f.FileWide = line, uint16(len(file)), uint16(len(function)), wide
	for i := range len(file) {
		f.File[i] = int8(file[i])
	}
	for i := range len(function) {
		f.Function[i] = int8(function[i])
	}
	return f
}

func TestDecodeStack(t *testing.T) {
	cut := frameOf(3, "/model.py", "f", 0)
	cut.Cut = 1
	stale := frameOf(5, "", "of another record", 0)
	stale.Cut = 1
	e, err := decode(written(
		frameOf(88, "/a/model.py", "Attention.scores", 0), frameOf(0, "", "of the interpreter", 0), stale, frameOf(1, "/b.py", "<interpreter trampoline>", 0),
		frameOf(7, "m\x00\xe4\x00", "g", 2), frameOf(9, "/\xe4.py", "h", 1), cut, frameOf(1<<31, "/far.py", "h", 0),
	))
	want := []ledgerfile.Frame{
		{File: "/a/model.py", Line: 88, Function: "Attention.scores"},
		{File: "mä", Line: 7, Function: "g"},
		{File: "/ä.py", Line: 9, Function: "h"},
		{File: "…/model.py", Line: 3, Function: "f"},
	}
	if diff := cmp.Diff(want, e.stack); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if e, err := decode(written()[:eventBytes]); err != nil || e.stack != nil {
		t.Errorf("without lines: %v, %v", e.stack, err)
	}
}

func FuzzDecodeStack(f *testing.F) {
	f.Add(written(frameOf(88, "/a/model.py", "scores", 0), frameOf(7, "m\x00", "g", 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		for _, x := range e.stack {
			if x.Line < 0 || x.Line > maxLine || len(x.File) > 4*len(watchFrame{}.File) || strings.ToValidUTF8(x.File, "") != x.File {
				t.Errorf("%+v", x)
			}
		}
	})
}

// TestRecallLines: a failure that came without lines has those of its number, and one
// of another place is another record.
func TestRecallLines(t *testing.T) {
	p := &process{}
	first := &event{stack: []ledgerfile.Frame{{File: "a.py", Line: 1}}}
	p.recall(first, 7)
	again, other, none := &event{}, &event{}, &event{}
	p.recall(again, 7)
	p.recall(other, 8)
	p.recall(none, 0)
	if len(again.stack) != 1 || other.stack != nil || none.stack != nil {
		t.Errorf("%v %v %v", again.stack, other.stack, none.stack)
	}
	for n := range uint64(10 * maxStacks) {
		p.recall(&event{stack: first.stack}, n+10)
	}
	if len(p.stacks) > maxStacks {
		t.Errorf("%d stacks are remembered", len(p.stacks))
	}
}

// failingPython opens a device of the fake library and asks for more than there is,
// from a function, in the main thread and in another one.
const failingPython = `import ctypes, sys, threading
lib = ctypes.CDLL(sys.argv[1])
device = ctypes.create_string_buffer(1 << 20)
sys.stdin.readline()
lib.device_open(device, ctypes.c_uint64(1 << 20), ctypes.c_uint64(5))

def ask():
    lib.device_fail(device)

class Model:
    def scores(self, n):
        for _ in range(n):
            pass
        ask()

if len(sys.argv) > 2:
    worker = threading.Thread(target=Model().scores, args=(3,))
    worker.start()
    worker.join()
else:
    Model().scores(3)
print("done", flush=True)
sys.stdin.readline()
`

// TestPythonLines: the lines of a Python program without anything loaded into it,
// of each CPython that is installed and known.
func TestPythonLines(t *testing.T) {
	_, library := fake(t)
	home, _ := os.UserHomeDir()
	script := filepath.Join(t.TempDir(), "ask.py")
	if err := os.WriteFile(script, []byte(failingPython), 0o644); err != nil {
		t.Fatal(err)
	}
	s := watch(t, Options{})
	tried := 0
	for minor := range pythonLayouts {
		found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3."+minor+".*/bin/python3."+minor))
		if path, err := exec.LookPath("python3." + minor); err == nil {
			found = append(found, path)
		}
		for _, python := range found {
			for _, thread := range []string{"", "thread"} {
				if exec.Command(python, "-c", "import ctypes").Run() != nil {
					continue // a shim
				}
				t.Run(strings.TrimSpace(minor+" "+thread), func(t *testing.T) { pythonLines(t, s, python, script, library, thread) })
				tried++
			}
		}
	}
	if tried == 0 {
		t.Skip("no Python that is known is installed")
	}
}

func pythonLines(t *testing.T, s *Source, python, script, library, thread string) {
	cmd := exec.Command(python, script, library)
	if thread != "" {
		cmd.Args = append(cmd.Args, thread)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait()
	}()
	eventually(t, "the program is watched", func() bool { _, ok := s.Find(cmd.Process.Pid); return ok })
	fmt.Fprintln(in)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	s.Sync()
	var got []ledgerfile.Frame
	for _, r := range s.Failures() {
		if r.Process.PID == cmd.Process.Pid {
			got = r.Stack
		}
	}
	scores := "Model.scores"
	if strings.HasSuffix(python, "3.10") {
		scores = "scores" // it does not keep the names of classes
	}
	want := []ledgerfile.Frame{{File: script, Line: 8, Function: "ask"}, {File: script, Line: 14, Function: scores}}
	if thread == "" {
		want = append(want, ledgerfile.Frame{File: script, Line: 21, Function: "<module>"})
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%v, want %v", got, want)
	}
}
