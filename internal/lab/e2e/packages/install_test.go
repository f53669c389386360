//go:build packages

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// install.sh as an ordinary user: it believes the checksums, writes below the
// prefix only, and takes away what it brought.
func TestInstallScript(t *testing.T) {
	dir := release(t, newRelease)
	user := &syscall.Credential{Uid: 65534, Gid: 65534}
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(home, ".local/bin/own")
	for path, mode := range map[string]os.FileMode{home: 0o755, dir: 0o755, filepath.Join(home, ".local/bin"): 0o755} {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{home, filepath.Join(home, ".local"), filepath.Join(home, ".local/bin"), own} {
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{filepath.Join(dir, "install.sh")}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	before := tree(t, home)
	for range 2 { // the second time over the first
		out, err := run()
		if err != nil || !strings.Contains(out, newVersion) || !strings.Contains(out, "export PATH=") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, program := range []string{"ttmon", "ttmond", "ttmon-server", "ttmon-sim"} {
		got := output(t, filepath.Join(home, ".local/bin", program), "--version")
		for _, want := range append([]string{newVersion}, commitAndDate(t)...) {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in what %s --version says: %s", want, program, got)
			}
		}
	}
	if out, err := run("--uninstall"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Errorf("what is left:\n%s", diff)
	}

	archive := "ttmon_" + newVersion + "_linux_" + runtime.GOARCH + ".tar.gz"
	bad := t.TempDir()
	for _, name := range []string{archive, "SHA256SUMS"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == archive {
			b[len(b)/2] ^= 1
		}
		if err := os.WriteFile(filepath.Join(bad, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d := bad; d != "/tmp"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(filepath.Join(bad, archive)); err == nil || !strings.Contains(out, "damaged") {
		t.Errorf("a damaged archive: %v\n%s", err, out)
	}
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Errorf("a damaged archive was unpacked:\n%s", diff)
	}
}

// commitAndDate are those of the checkout that is tested; none in an archive of it.
func commitAndDate(t *testing.T) []string {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(output(t, filepath.Join(root, "tools/version"), "-c"))
}

// tree lists a directory.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
