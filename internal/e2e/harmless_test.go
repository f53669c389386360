package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/sim"
)

// TestHarmless runs every command under strace: no device node is opened, and
// nothing is opened for writing but the command's own output.
func TestHarmless(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed; make test installs it")
	}
	h := start(t, sim.Options{Boards: "n150,n300,p150a"})
	ctl(t, h, "run", "name=llama,devices=0+1")
	file := filepath.Join(t.TempDir(), "out.json")
	for _, args := range [][]string{
		{"smi"},
		{"smi", "-L"},
		{"smi", "-q"},
		{"smi", "--json"},
		{"smi", "--query-device=index,temperature.asic,memory.used", "--format=csv"},
		{"smi", "--query-apps=pid,used_memory", "--format=csv"},
		{"smi", "--sample", "100"},
		{"smi", "dmon", "-c", "2", "-d", "1"},
		{"smi", "pmon", "-c", "1"},
		{"smi", "-s", "--snapshot_no_tty"},
		{"smi", "-ls"},
		{"smi", "-s", "-f", file},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "strace")
			r := runProgram(t, h, strace, append([]string{
				"-f", "-qq", "-o", log, "-e", "trace=open,openat,openat2,creat,unlink,unlinkat,rename,renameat2,truncate,ftruncate,mkdir,mkdirat",
				filepath.Join(bin, "ttmon"),
			}, args...)...)
			if r.code != 0 {
				t.Fatalf("exit code %d: %s", r.code, r.err)
			}
			checkTrace(t, log, file)
		})
	}
	if audit := ctl(t, h, "audit"); strings.Contains(audit, "ttmon") && !strings.Contains(audit, "ttmon-sim") {
		t.Errorf("the simulated driver saw ttmon at its nodes:\n%s", audit)
	}
}

// checkTrace reads what strace saw. own is the one file that may be written.
func checkTrace(t *testing.T, log, own string) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		line := s.Text()
		if strings.Contains(line, `"/dev/tenstorrent/`) {
			t.Errorf("a device node was touched: %s", line)
		}
		writes := false
		for _, word := range []string{"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "creat(", "unlink", "rename", "truncate", "mkdir"} {
			writes = writes || strings.Contains(line, word)
		}
		if writes && !strings.Contains(line, own) && !strings.Contains(line, `"/dev/null"`) && !strings.Contains(line, `"/dev/tty"`) {
			t.Errorf("something was opened for writing: %s", line)
		}
	}
	if lines == 0 {
		t.Error("strace saw nothing: this test cannot fail")
	}
}
