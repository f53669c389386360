package nsroot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inner is the directory that the test, run again in a namespace of its
// own, is to work in.
const inner = "TTMON_SIM_NSROOT_TEST"

// TestAssemble replaces a directory in a namespace of its own, so that the
// real host sees nothing of it.
func TestAssemble(t *testing.T) {
	if dir := os.Getenv(inner); dir != "" {
		assemble(t, dir)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAssemble$")
	cmd.Env = append(os.Environ(), inner+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "top/class/new")); err == nil {
		t.Error("the change shows outside the namespace")
	}
	if b, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(b), dir) {
		t.Error("a mount is left outside the namespace")
	}
}

func assemble(t *testing.T, dir string) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(Private())
	top := filepath.Join(dir, "top")
	for _, d := range []string{"class/net/eth0", "class/hidden", "devices/a", "kernel/deep", "open"} {
		must(os.MkdirAll(filepath.Join(top, d), 0o755))
	}
	must(os.WriteFile(filepath.Join(top, "kernel/file"), []byte("real"), 0o444))
	must(os.WriteFile(filepath.Join(top, "plain"), []byte("covered"), 0o444))
	must(os.Symlink("class/net", filepath.Join(top, "link")))
	source := filepath.Join(dir, "source")
	must(os.MkdirAll(filepath.Join(source, "made"), 0o755))
	must(os.WriteFile(filepath.Join(source, "f"), []byte("made up"), 0o444))
	stage := filepath.Join(dir, "stage")
	must(os.Mkdir(stage, 0o755))

	must(Plan{
		Tops:   []string{top},
		Insert: map[string]string{top + "/class/new": source, top + "/missing/way/new": source, top + "/class/file": source + "/f"},
		Open:   []string{top + "/open"},
		Hide:   []string{top + "/class/hidden"},
		Cover:  map[string]string{top + "/plain": source + "/f"},
		Write:  map[string]string{top + "/marker": "here\n"},
	}.Assemble(stage))

	for path, want := range map[string]string{
		"kernel/file": "real", "class/new/f": "made up", "missing/way/new/f": "made up", "class/file": "made up", "plain": "made up", "marker": "here\n",
	} {
		if b, err := os.ReadFile(filepath.Join(top, path)); string(b) != want {
			t.Errorf("%s: %q %v, want %q", path, b, err, want)
		}
	}
	for path, want := range map[string]bool{
		"class/net/eth0": true, "devices/a": true, "kernel/deep": true, "link/eth0": true, "class/hidden": false,
	} {
		if _, err := os.Stat(filepath.Join(top, path)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	if to, err := os.Readlink(filepath.Join(top, "link")); to != "class/net" {
		t.Errorf("link %q %v", to, err)
	}
	for round := range 2 {
		late := filepath.Join(top, "open/late")
		must(Show(source, late))
		if _, err := os.Stat(late + "/f"); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		must(Remove(late))
		if _, err := os.Stat(late); !os.IsNotExist(err) {
			t.Errorf("round %d: removed: %v", round, err)
		}
	}
	if err := Show(fmt.Sprintf("%s/nothing", dir), top+"/open/x"); err == nil || !strings.Contains(err.Error(), "open/x") {
		t.Errorf("showing nothing: %v", err)
	}
}
