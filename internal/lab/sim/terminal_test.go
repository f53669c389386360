package sim_test

import (
	"os/exec"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestNewTerminals: tmux and friends open terminals inside a host.
func TestNewTerminals(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script (util-linux), which is missing here")
	}
	h := start(t, sim.Options{Boards: "n150"})
	if out, err := h.Command(t.Context(), "script", "-qec", "test -t 0 && test -t 1", "/dev/null").CombinedOutput(); err != nil {
		t.Errorf("a terminal of its own: %v\n%s", err, out)
	}
}
