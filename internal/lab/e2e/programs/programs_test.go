package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestBuild(t *testing.T) {
	dir, err := Build(false, "ttmon")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command(filepath.Join(dir, "ttmon"), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ttmon") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := Build(false, "nothing"); err == nil || !strings.Contains(err.Error(), "building nothing: ") {
		t.Errorf("a command that is not there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "ttmon-bin-*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDepend: a result is taken from the cache until a command's source
// changes.
func TestDepend(t *testing.T) {
	Depend(t)
	const inner = "PROGRAMS_TEST_INNER"
	if os.Getenv(inner) != "" {
		return
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestDepend$", "-test.testlogfile="+log)
	cmd.Env = append(os.Environ(), inner+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	noted, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/cmd/ttmond/main.go\n", "/internal/hostfs/detach_linux_amd64.s\n", "/go.sum\n"} {
		if !strings.Contains(string(noted), file) {
			t.Errorf("%q is not in go test's notes", file)
		}
	}
}
