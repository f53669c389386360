package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// install makes a directory look like an installed ttnn and returns the path
// of its library.
func install(t *testing.T, release string) string {
	t.Helper()
	top, err := os.MkdirTemp(bin, "ttnn-") // which other users can reach
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(top, "lib/python3.12/site-packages")
	lib := filepath.Join(site, "ttnn/build/lib/libtt_metal.so")
	for _, dir := range []string{filepath.Dir(lib), filepath.Join(site, "ttnn-"+release+".dist-info")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(lib, make([]byte, os.Getpagesize()), 0o644); err != nil {
		t.Fatal(err)
	}
	return lib
}

// waitName waits until a process has become another program.
func waitName(t *testing.T, pid int, name string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(b)) == name {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still %q", pid, b)
		}
	}
}
