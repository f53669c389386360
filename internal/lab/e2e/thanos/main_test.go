//go:build thanos

package thanos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// thanos is the program, built once for all runs.
var thanos string

// programs are those of ours that the tests run.
var programs = []string{"ttmon", "ttmond", "ttmon-server", "ttmon-sim"}

// Thanos, and what our own programs are made of, is built before the tests
// begin: how long that takes the machine decides, minutes or, from an empty
// cache on a busy one, an hour. What the limit is for is the tests.
func TestMain(m *testing.M) {
	cache, err := os.UserCacheDir()
	if err == nil {
		thanos = filepath.Join(cache, "ttmon", "thanos-0.41.0")
	}
	if err == nil && !hermetic.Inside() {
		err = prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	hermetic.Enter(hermetic.Options{Limit: 10 * time.Minute})
	os.Exit(m.Run())
}

func prepare() error {
	for _, name := range programs {
		if err := build("../../../..", os.DevNull, "./cmd/"+name); err != nil {
			return err
		}
	}
	if _, err := os.Stat(thanos); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(thanos), 0o755); err != nil {
		return err
	}
	fmt.Println("building Thanos; that takes minutes")
	made := fmt.Sprintf("%s.%d", thanos, os.Getpid()) // a build that is stopped leaves nothing under the name
	if err := build("build", made, "github.com/thanos-io/thanos/cmd/thanos"); err != nil {
		return err
	}
	return os.Rename(made, thanos)
}

// build makes a program.
func build(dir, out, what string) error {
	// Thanos needs labels in the form of this tag; ttmon does not care.
	cmd := exec.Command("go", "build", "-tags", "slicelabels", "-o", out, what)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GONOSUMDB=github.com/thanos-community/*")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", what, err, b)
	}
	return nil
}
