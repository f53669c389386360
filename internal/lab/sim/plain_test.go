package sim_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

func newTree(t *testing.T, o sim.Options, dir string) *sim.Tree {
	t.Helper()
	tr, err := sim.NewTree(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func slurp(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPlainTreeMoves(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	newTree(t, sim.Options{Boards: "n300,p150a"}, dir)
	beat := dir + class("1", "tt_heartbeat")
	f, err := os.Open(beat)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := slurp(t, beat)
	until(t, "a kept descriptor to see another heartbeat", func() bool {
		buf := make([]byte, 64)
		n, _ := f.ReadAt(buf, 0)
		return string(buf[:n]) != first
	})
	if got := slurp(t, dir+"/proc/driver/tenstorrent/1/pids"); got != "" {
		t.Errorf("pids %q: no process has it open", got)
	}
	for _, path := range []string{"/proc/stat", "/proc/self/stat", "/proc/uptime", "/proc/meminfo", "/proc/devices", "/sys/ttmon-sim", "/sys/devices/system/cpu/online"} {
		slurp(t, dir+path)
	}
	if _, err := sim.NewTree(sim.Options{Boards: "n150", Procs: []string{"name=w"}}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "plain tree") {
		t.Errorf("%v, want a word on plain trees", err)
	}
}

func TestPlainTreeTakesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := newTree(t, sim.Options{Boards: "n300"}, dir)
	tr.Close()
	if got := slurp(t, dir+class("0", "tt_card_type")); got != "n300\n" {
		t.Errorf("after closing: %q; the files stay", got)
	}
	newTree(t, sim.Options{Boards: "n150"}, dir).Close() // again, over the old one
	if got := slurp(t, dir+class("0", "tt_card_type")); got != "n150\n" {
		t.Errorf("second tree: %q", got)
	}
	other := t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sim.NewTree(sim.Options{Boards: "n150"}, other)
	if _, ok := errors.AsType[*sim.OptionError](err); !ok || !strings.Contains(err.Error(), other) {
		t.Errorf("a directory with something in it: %v", err)
	}
	entries, _ := os.ReadDir(other)
	if len(entries) != 1 {
		t.Errorf("the directory was touched: %v", entries)
	}
}

func TestPlainTreeModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newTree(t, sim.Options{Boards: "p150b", Frozen: true}, dir)
	for path, want := range map[string]fs.FileMode{
		class("0", "tt_aiclk"): 0o444, class("0", "device/resource0"): 0o600, class("0", "device/remove"): 0o220,
		"/dev/tenstorrent/0": 0o666, "/sys/module/tenstorrent/parameters/idle_power_down_grace_ms": 0o644,
	} {
		t.Run(path, func(t *testing.T) {
			st, err := os.Stat(dir + path)
			if err != nil || st.Mode().Perm() != want {
				t.Errorf("%v %v, want mode %o", st, err, want)
			}
		})
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir+class("0", "device"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		t.Errorf("device is no link: %v", err)
	}
}
