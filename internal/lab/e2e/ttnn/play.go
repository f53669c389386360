package ttnn

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// Play starts a job that ends with the test. A machine that can never run ttnn
// skips the test; one that could, and does not, fails it: there is nothing to
// put in its place.
func Play(t testing.TB, o Options) *Job {
	t.Helper()
	NeedRelease(t, o.Release)
	j, err := Start(o)
	check(t, err)
	t.Cleanup(func() {
		if err := j.End(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// Interpreter is the Python of a release, for tests that have their own
// program; it skips and fails as Play does.
func Interpreter(t testing.TB, release string) (path string) {
	t.Helper()
	NeedRelease(t, release)
	path, err := Python(release)
	check(t, err)
	return path
}

// NeedRelease skips a test of another release under `make test`, whose set-up
// installs only the newest.
func NeedRelease(t testing.TB, release string) {
	t.Helper()
	if release != "" && release != Newest {
		hermetic.Long(t)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if cannot, ok := errors.AsType[*CannotRunError](err); ok {
		t.Skipf("needs a machine that ttnn runs on: %v", cannot)
	}
	if err != nil {
		t.Fatalf("the real ttnn does not run here: %v", err)
	}
}

// Library is the path of tt-metal's library in a release.
func Library(t testing.TB, release string) string {
	t.Helper()
	root := filepath.Dir(filepath.Dir(Interpreter(t, release)))
	found, err := filepath.Glob(filepath.Join(root, "lib/python3*/site-packages/ttnn/build/lib/libtt_metal.so"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the library of ttnn %s below %s: %v, %v", release, root, found, err)
	}
	return found[0]
}
