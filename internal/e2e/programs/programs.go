// Package programs builds the commands for tests that run them. Only tests
// import it.
package programs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
)

// Build builds commands ("ttmon", "ttmond") into a new directory that every
// user can reach. The caller removes it. With race they are built like a test
// that looks for races, otherwise like a release: without C.
func Build(race bool, commands ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "ttmon-bin-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	args := []string{"build", "-o", dir + "/"}
	cgo := "CGO_ENABLED=0"
	if race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	for _, c := range commands {
		args = append(args, "github.com/ttmon/ttmon/cmd/"+c)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("building %s: %w\n%s", strings.Join(commands, ", "), err, out)
	}
	return dir, nil
}

// Depend tells go test that a test's result depends on the commands' source.
// It takes results from its cache as long as the files are unchanged that the
// test looked at, and does not know what a command that it ran was made of.
func Depend(t testing.TB) {
	t.Helper()
	if err := lookAtSource(); err != nil {
		t.Fatal(err)
	}
}

var lookAtSource = sync.OnceValue(func() error {
	root, err := ttnn.Repository()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.sum")); err != nil {
		return err
	}
	for _, dir := range []string{"cmd", "internal", "lib"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
				return err
			}
			_, err = os.Stat(path) // this is what go test notes
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
})
