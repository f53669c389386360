package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// slowCompiler is a directory that ttnn takes for its own, with a compiler that takes as
// long as the real one does: a second for each kernel.
func slowCompiler(t *testing.T) (root string) {
	t.Helper()
	python := ttnn.Interpreter(t, ttnn.Newest)
	found, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python3.*/site-packages/ttnn"))
	if err != nil || len(found) != 1 {
		t.Fatalf("ttnn beside %s: %v, %v", python, found, err)
	}
	const bin = "runtime/sfpi/compiler/bin"
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, bin), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "runtime"} {
		entries, err := os.ReadDir(filepath.Join(found[0], dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "runtime" || e.Name() == "sfpi" {
				continue
			}
			if err := os.Symlink(filepath.Join(found[0], dir, e.Name()), filepath.Join(root, dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	const name = bin + "/riscv-tt-elf-g++"
	script := `#!/bin/sh
case "$*" in *version*) ;; *) i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done ;; esac
exec ` + python + " " + filepath.Join(found[0], name) + ` "$@"
`
	if err := os.WriteFile(filepath.Join(root, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// compiles starts a real ttnn program that compiles its kernels, and then computes until
// the test ends. $PID is its pid.
func (x *task) compiles(ts *testscript.TestScript, _ bool, _ []string) {
	python, dir := ttnn.Interpreter(x.T, ttnn.Newest), x.TempDir()
	cmd := x.host.Command(x.Context(), filepath.Join(bin, "ttmon"), "run", "-q", "--", python, "-c", `
import ttnn, os
print(os.getpid(), flush=True)
d = ttnn.open_device(device_id=0)
a = ttnn.zeros([1, 1, 512, 512], ttnn.bfloat16, ttnn.TILE_LAYOUT, d)
b = ttnn.add(a, a)
while True:
    pass
`)
	cmd.Env = append(cmd.Environ(), append(mock(x.T, "blackhole_P150", dir), "TT_METAL_RUNTIME_ROOT="+slowCompiler(x.T))...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	x.Cleanup(func() { _ = cmd.Wait() }) // its context has ended
	line := make([]byte, 32)
	n, err := out.Read(line)
	ts.Check(err)
	pid := strings.TrimSpace(string(line[:n]))
	if _, err := strconv.Atoi(pid); err != nil {
		ts.Fatalf("the program says %q", line[:n])
	}
	ts.Setenv("PID", pid)
}
