package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// TestMakeRun: what make run does once everything is built. It shows as many of
// its workloads as there are boards, and serves the page, also where something
// else listens already.
func TestMakeRun(t *testing.T) {
	hermetic.Need(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a host for each")
	}
	t.Parallel()
	programs.Depend(t)
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := net.Listen("tcp", "127.0.0.1:9108"); err == nil { // else another process has it already
		t.Cleanup(func() { l.Close() })
	}
	workloads := []string{"serve.py", "bench.py", "./instrumented"}
	for boards, shown := range map[string]int{"n300": 1, "n300,p150a,p150a,n150": 3} {
		t.Run(boards, func(t *testing.T) {
			t.Parallel()
			// Processes of other tests must not be seen.
			cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
				"sh", "-ec", `mount -t tmpfs none /dev/shm; exec "$0"`, filepath.Join(root, "tools/run"))
			cmd.Env = append(environment(t), "BIN="+bin, "BOARDS="+boards)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "\nThe page: http://127.0.0.1:") {
				t.Errorf("%v, or no page:\n%s", err, out)
			}
			if n := strings.Count(string(out), "http://"); n != 1 { // the page is gone at the end
				t.Errorf("%d addresses, want 1:\n%s", n, out)
			}
			for i, w := range workloads {
				if strings.Contains(string(out), w) != (i < shown) {
					t.Errorf("%s is shown: %v, want %v:\n%s", w, i >= shown, i < shown, out)
				}
			}
		})
	}
}
