package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/model"
)

// TestDriverWithMemory: what a driver may say one day of the memory of its devices is
// shown, from the file to the command.
func TestDriverWithMemory(t *testing.T) {
	t.Parallel()
	programs.Depend(t)
	for name, dir := range map[string]string{"one proposal": "memory_stats", "the other": "memory"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const script = `cd "$0/sys/class/tenstorrent/tenstorrent!0" && mkdir "$1" && echo 5368709120 >"$1/dram_used" && echo 1048576 >"$1/l1_used" &&
				"$2/ttmon" --root "$0" smi --json && "$2/ttmon" --root "$0" mem --once >&2`
			tree := filepath.Join(t.TempDir(), "tree")
			r := finish(t, exec.CommandContext(t.Context(), filepath.Join(bin, "ttmon-sim"), "--boards", "2xp150a", "--root", tree, "--", "sh", "-c", script, tree, dir, bin))
			s, err := wire.Decode([]byte(r.out))
			if err != nil {
				t.Fatalf("%v\n%s%s", err, r.out, r.err)
			}
			if pools := s.Devices[0].Memory.Pools; !pools[model.DRAM].Used.Exactly(5<<30) || pools[model.L1].Used != model.ExactBytes(1<<20).Doubted(model.Unsure) { // of which buffers, circular buffers and kernels are parts
				t.Errorf("DRAM %+v, L1 %+v", pools[model.DRAM].Used, pools[model.L1].Used)
			}
			if u := s.Devices[1].Memory.Pools[model.DRAM].Used; !u.Exactly(0) {
				t.Errorf("the device without these files has %+v", u)
			}
			for _, want := range []string{"5.0/31.9 GiB", "inferred: L1 that the driver counts and no process accounts for"} {
				if !strings.Contains(r.err, want) {
					t.Errorf("no %q in\n%s", want, r.err)
				}
			}
		})
	}
}
