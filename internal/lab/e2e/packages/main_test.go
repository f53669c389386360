//go:build packages

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Limit: 80 * time.Minute})
	os.Exit(m.Run())
}

// Two releases, the second for both architectures.
const (
	oldVersion, newVersion = "0.1.0-dev.1", "0.1.0-dev.2"
)

var (
	oldRelease = sync.OnceValues(func() (string, error) { return build("packages", oldVersion, runtime.GOARCH) })
	newRelease = sync.OnceValues(func() (string, error) { return build("release", newVersion, "amd64 arm64") })
)

func build(purpose, version, arches string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "release-"); err != nil {
		return "", err
	}
	return dir, buildInto(dir, purpose, version, arches)
}

func buildInto(dir, purpose, version, arches string) error {
	root, err := ttnn.Repository()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(root, "tools/package/build"), purpose, dir)
	cmd.Env = append(os.Environ(), "VERSION="+version, "ARCHES="+arches)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// release returns the directory of one, which is made once.
func release(t *testing.T, make func() (string, error)) string {
	t.Helper()
	dir, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// packageNames are the packages that are described below packaging/nfpm.
func packageNames(t *testing.T) (names []string) {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(root, "packaging/nfpm/*.yaml"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no packages are described: %v", err)
	}
	for _, path := range list {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	return names
}

// tilde is how packages spell a version.
func tilde(version string) string { return strings.Replace(version, "-", "~", 1) }

// glob returns the one file that matches.
func glob(t *testing.T, dir, pattern string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v %v", pattern, list, err)
	}
	return list[0]
}

// output runs a command of this machine.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s on this machine", name)
	}
	cmd := exec.Command(name, args...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errors.String())
	}
	return string(out)
}
