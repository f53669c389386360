package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// TestOfTests: tests pass on a machine on which everything is that used to
// make them fail or hang: regions of others, another ttmond, file systems that
// do not answer, a full /tmp, a pid namespace that is not the first. (All tests
// there: tools/unfriendly.)
func TestOfTests(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	hermetic.Need(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make such a machine")
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp("/var/tmp", "ttmon-e2e-") // not /tmp: that one is full there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "tools/unfriendly"), "sh", "-ec",
		`[ -e /dev/shm/tt_device_77_memory ] && [ -S /run/ttmon/ttmond.sock ] && ! echo x >/tmp/x
		 go test -vet=off -trimpath -count=1 ./internal/source/shm -run 'TestLifeOfAProcess|TestKilledProcessIsAGhost|TestRemove$' -v
		 go test -vet=off -trimpath -count=1 ./cmd/ttmon -run TestScripts/stale -v
		 go test -vet=off -trimpath -count=1 ./cmd/ttmond -run 'TestSecondServer|TestDeath$' -v`)
	cmd.Env = append(os.Environ(), "BIN="+bin, "TMPDIR="+tmp, "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\nok ") != 3 || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}
