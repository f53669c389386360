package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// pythonsHere finds the interpreters whose frames libttmon can read.
func pythonsHere(t *testing.T) []string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, minor := range []string{"3.10", "3.11", "3.12", "3.13", "3.14"} {
		if path, err := exec.LookPath("python" + minor); err == nil && exec.Command(path, "-c", "").Run() == nil {
			found = append(found, path)
			continue
		}
		list, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions", minor+".*", "bin/python"+minor))
		found = append(found, list...)
	}
	if len(found) == 0 {
		t.Skip("no CPython 3.10 to 3.14 here")
	}
	return found
}

// pythonCommand runs a script with more variables.
func pythonCommand(python, script string, env ...string) *exec.Cmd {
	cmd := exec.Command(python, script)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// pytestFolder has pytest, installed once into the cache.
func pytestFolder(t *testing.T, python string) string {
	t.Helper()
	const version = "8.3.4"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "ttmon", "pytest-"+version)
	if _, err := os.Stat(filepath.Join(dir, "pytest")); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "pytest-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	if out, err := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", fresh, "pytest=="+version).CombinedOutput(); err != nil {
		t.Skipf("pip could not install pytest: %v\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil && !os.IsExist(err) {
		return fresh
	}
	return dir
}

// The plugin marks the test that leaked, names the line, and no other.
func TestPytestPlugin(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	python := ttnn.Interpreter(t, ttnn.Newest)
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	library := strings.TrimPrefix(preloadedEnv(t)[0], "LD_PRELOAD=")
	dir := t.TempDir()
	cmd := pythonCommand(python, "-m", append(mock(t, "blackhole_P150", dir), "TTMON_LIBRARY="+library, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+pytestFolder(t, python)+":"+filepath.Join(root, "lib/python"))...)
	cmd.Args = append(cmd.Args, "pytest", "-q", "-p", "ttmon.pytest_plugin", "-p", "no:cacheprovider", "--ttmon-fail-on-leak",
		filepath.Join(root, "lib/python/tests/leaky"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err == nil || !strings.Contains(text, "test_leaks left 2.0 MiB of device memory behind, in 1 blocks") || !strings.Contains(text, "3 passed, 1 error") ||
		!strings.Contains(text, "test_model.py:17 tensor") {
		t.Errorf("%v\n%s", err, text[max(0, len(text)-3000):])
	}
}
