package descriptor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// TestRealTTNN gives our descriptors to the real ttnn in mock mode. It must
// accept them, keep its accounting regions under the ids that we predict, and
// see the DRAM and cores that the catalogue lists.
func TestRealTTNN(t *testing.T) {
	hermetic.Long(t)
	python := ttnn.Interpreter(t, ttnn.Newest)
	for _, c := range []struct {
		card   string
		n      int
		cables bool
		shape  []int // empty: chip by chip
		cores  int   // Tensix cores but for the row or column that dispatch takes
	}{
		{"n150", 1, false, nil, 64},
		{"n300", 1, false, []int{1, 2}, 64}, // dispatches on Ethernet cores
		{"n300", 4, true, []int{2, 4}, 64},
		{"p100a", 1, false, nil, 110},
		{"p150a", 1, false, nil, 110},
		{"p150a", 2, false, nil, 110},
		{"p150a", 2, true, []int{1, 2}, 110},
		{"p150c", 4, true, []int{2, 2}, 110},
		{"p300a", 1, false, []int{1, 2}, 110},
		{"galaxy-wormhole", 1, false, []int{8, 4}, 72},
		{"galaxy-blackhole", 1, false, []int{8, 4}, 120},
	} {
		t.Run(fmt.Sprintf("%dx%s cables=%v", c.n, c.card, c.cables), func(t *testing.T) {
			endpoints := boards(t, c.card, c.n)
			d := describe(t, endpoints, c.cables)
			got := runMesh(t, python, d, c.shape)
			var want []string
			for _, chip := range d.Chips {
				want = append(want, strconv.FormatUint(chip.UniqueID, 10))
			}
			slices.Sort(want)
			slices.Sort(got.IDs)
			if !slices.Equal(got.IDs, want) {
				t.Errorf("regions of chips %v, want %v", got.IDs, want)
			}
			b := endpoints[0].Board
			if got.DRAMBanks != b.Banks || got.DRAMBankBytes > b.BankBytes || got.DRAMBankBytes < b.BankBytes-8<<20 {
				t.Errorf("%d banks of %d bytes; the catalogue says %d of %d, a few MiB of them reserved",
					got.DRAMBanks, got.DRAMBankBytes, b.Banks, b.BankBytes)
			}
			if got.Cores != c.cores {
				t.Errorf("%d cores for programs, want %d", got.Cores, c.cores)
			}
		})
	}
}

type meshResult struct {
	IDs           []string `json:"ids"`
	DRAMBanks     int      `json:"dram_banks"`
	DRAMBankBytes uint64   `json:"dram_bank_bytes"`
	Cores         int      `json:"cores"`
}

// runMesh runs testdata/mesh.py with a /dev/shm of its own.
func runMesh(t *testing.T, python string, d *umd.Descriptor, shape []int) (r meshResult) {
	t.Helper()
	dir := t.TempDir()
	desc := filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(desc, AppendYAML(nil, d), 0o644); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/mesh.py")
	if err != nil {
		t.Fatal(err)
	}
	arg, _ := json.Marshal(shape)
	cmd := exec.Command("sh", "-c", `mount -t tmpfs none /dev/shm && exec "$@"`, "sh", python, script, string(arg))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+desc, "TT_METAL_LOGS_PATH="+dir, "TT_METAL_CACHE="+filepath.Join(dir, "cache"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}} // or no file can be made
	}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "RESULT "); ok && json.Unmarshal([]byte(text), &r) == nil {
			return r
		}
	}
	t.Fatalf("%v\n%s", err, out)
	return r
}
