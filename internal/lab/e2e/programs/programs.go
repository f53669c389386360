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

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// Build builds commands ("ttmon", "ttmond") into a new directory that every
// user can reach. The caller removes it. With race they are built like a test
// that looks for races, otherwise like a release: without C.
//
// They are linked once for all packages whose tests ask for them: below bin,
// where the go command leaves alone what is up to date. In a tree that cannot
// be written they are linked for each package.
func Build(race bool, commands ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "ttmon-bin-"); err != nil {
		return "", err
	}
	// A test may have started go test itself, where that directory is not.
	if built := inherited[race]; built == "" || copyAll(built, dir, commands) != nil {
		err = buildInto(dir, race, commands)
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	if err := os.Setenv(builtVar(race), dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// inherited is where the commands were built already: by the test binary that
// runs this one for a single test (hermetic.Alone).
var inherited = map[bool]string{false: os.Getenv(builtVar(false)), true: os.Getenv(builtVar(true))}

func builtVar(race bool) string {
	if race {
		return "TESTED_PROGRAMS_RACE"
	}
	return "TESTED_PROGRAMS"
}

func copyAll(from, to string, commands []string) error {
	var files []string
	for _, c := range commands {
		files = append(files, filepath.Join(from, c))
	}
	return copyFiles(to, files...)
}

func buildInto(dir string, race bool, commands []string) error {
	shared, unlock, err := lockShared(race)
	if err != nil {
		return link(dir, race, commands)
	}
	defer unlock()
	if err := link(shared, race, commands); err != nil {
		return err
	}
	return copyAll(shared, dir, commands)
}

func link(dir string, race bool, commands []string) error {
	args, cgo := []string{"build", "-trimpath", "-o", dir + "/"}, "CGO_ENABLED=0"
	if race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	for _, c := range commands {
		args = append(args, "github.com/ttmon/ttmon/cmd/"+c)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(commands, ", "), err, out)
	}
	return nil
}

// lockShared makes the directory that programs are linked into, and keeps the
// tests of other packages out of it until unlock is called.
func lockShared(race bool) (dir string, unlock func(), err error) {
	root, err := ttnn.Repository()
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(root, "bin/tested")
	if race {
		dir += "-race"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return "", nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return "", nil, err
	}
	return dir, func() { f.Close() }, nil
}

// Depend tells go test that a test's result depends on the commands' source.
// It takes results from its cache as long as the files are unchanged that the
// test read, and does not know what a command that it ran was made of.
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
