package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWholeHost: a simulated host in a pid namespace says that this namespace
// is all of it, so that what died there is known to be dead, as on a machine
// of its own; a container in it sees less and says so.
func TestWholeHost(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a pid namespace")
	}
	simulator, ttmon := filepath.Join(bin, "ttmon-sim"), filepath.Join(bin, "ttmon")
	const ghost = `"$1" metal -e "name ghost; open 77; alloc 77 dram 128M; die"; `
	const inContainer = `unshare --pid --fork --mount sh -c 'mount -t proc proc /proc && exec "$1" stale' sh "$2"`
	for _, tt := range []struct{ name, look, want, not string }{
		{"the whole host", `exec "$2" stale`, "--remove", "nothing stale"},
		{"a container in it", inContainer, "", "--remove"}, // who is not there may be outside
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := finish(t, exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc",
				simulator, "--boards", "n150", "--", "sh", "-c", ghost+tt.look, "sh", simulator, ttmon))
			if !strings.Contains(r.out, tt.want) || strings.Contains(r.out, tt.not) {
				t.Errorf("exit code %d, want %q and not %q in:\n%s%s", r.code, tt.want, tt.not, r.out, r.err)
			}
		})
	}
}
