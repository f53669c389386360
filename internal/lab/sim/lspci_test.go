package sim_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestLspci lets the tool that knows PCI best look at the simulated boards.
func TestLspci(t *testing.T) {
	if _, err := exec.LookPath("lspci"); err != nil {
		t.Skip("needs lspci (pciutils)")
	}
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,2xp150a", Dead: "2"})
	// -n: with udev's hardware database lspci prints names instead of numbers.
	board := output(t, h, "lspci", "-n", "-v", "-s", "0000:41:00.0")
	for _, want := range []string{"Subsystem: 1e52:0018", "[size=512M]", "[size=32M]", "Kernel driver in use: tenstorrent"} {
		if !strings.Contains(board, want) {
			t.Errorf("no %q in\n%s", want, board)
		}
	}
	if tree := output(t, h, "lspci", "-t"); !strings.Contains(tree, "01.1-[41]----00.0") {
		t.Errorf("the board is not behind its port:\n%s", tree)
	}
	if dead := output(t, h, "lspci", "-n", "-v", "-s", "0000:43:00.0"); !strings.Contains(dead, "Unknown header type 7f") {
		t.Errorf("of a dead chip:\n%s", dead)
	}
	if all := output(t, h, "lspci", "-n", "-d", "1e52:"); strings.Count(all, "1e52:") != 3 {
		t.Errorf("boards: %s", all)
	}
}
