package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// TestMakeInstall: make install installs all that packages have, and make uninstall
// removes it again, but not what it did not install.
func TestMakeInstall(t *testing.T) {
	t.Parallel()
	programs.Depend(t)
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	run := func(target string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "make", "-C", root, target, "BIN="+bin, "DESTDIR="+dest, "PREFIX=/opt/x", "ALIASES=1")
		cmd.Env = environment(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	own := filepath.Join(dest, "opt/x/bin/own")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	run("install-built")
	installed := filesBelow(t, dest)
	for _, program := range []string{"ttmon", "ttmon-sim", "ttmond", "ttmon-server", "tt-smi", "tt-nvtop", "tt_smi", "tt_smi_umd", "allocation_monitor_client", "memory_monitor_test"} {
		for _, file := range []string{"bin/" + program, "share/bash-completion/completions/" + program, "share/zsh/site-functions/_" + program, "share/fish/vendor_completions.d/" + program + ".fish"} {
			if !slices.Contains(installed, "opt/x/"+file) {
				t.Errorf("%s is not installed", file)
			}
		}
	}
	for _, file := range []string{"share/man/man8/ttmond.8", "share/man/man8/ttmon-server.8", "share/ttmon/ttmond.toml", "share/ttmon/ttmon-server.toml", "lib/systemd/system/ttmon-server.service", "lib/sysusers.d/ttmon-server.conf", "lib/pkgconfig/ttmon.pc"} {
		if !slices.Contains(installed, "opt/x/"+file) {
			t.Errorf("%s is not installed", file)
		}
	}
	unit, err := os.ReadFile(filepath.Join(dest, "opt/x/lib/systemd/system/ttmond.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/opt/x/bin/ttmond") {
		t.Errorf("the unit does not start the program that was installed: %v\n%s", err, unit)
	}
	run("uninstall")
	if left := filesBelow(t, dest); !slices.Equal(left, []string{"opt/x/bin/own"}) {
		t.Errorf("after make uninstall there is: %q", left)
	}
}

// filesBelow lists files and links, without directories.
func filesBelow(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
