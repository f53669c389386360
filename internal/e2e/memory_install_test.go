package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
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
	lib, err := ttnn.Imitate(top, release)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// waitName waits until a process has become another program.
func waitName(t *testing.T, pid int, name string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
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
