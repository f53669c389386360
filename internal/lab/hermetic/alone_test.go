package hermetic

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test that is alone sees no process of others, and nothing of theirs in
// /dev/shm; the files of the package's tests are there.
func TestAlone(t *testing.T) {
	Need(t)
	const theirs = "/dev/shm/theirs"
	if os.Getenv(aloneVar) == "" {
		if err := os.WriteFile(theirs, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(theirs)
		other := exec.Command("sleep", orphan)
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	}
	if !Alone(t) {
		return
	}
	if pids := processes(""); len(pids) > 0 {
		t.Errorf("in sight: %v", pids)
	}
	if left, err := filepath.Glob("/dev/shm/*"); err != nil || len(left) > 0 {
		t.Errorf("in /dev/shm: %v, %v", left, err)
	}
	if !Inside() {
		t.Error("what is in /run is not there")
	}
}

// TestAlonePart ends as the variable says, below TestAloneEnds.
func TestAlonePart(t *testing.T) {
	how := os.Getenv(part)
	if how == "" || !Alone(t) {
		return
	}
	switch how {
	case "fail":
		t.Error("it has failed")
	case "skip":
		t.Skip("it needs nothing")
	case "exit":
		os.Exit(0)
	}
}

// However a test that is alone ends, that is how it ends for go test.
func TestAloneEnds(t *testing.T) {
	Need(t)
	for how, want := range map[string]struct {
		code int
		line string
	}{
		"pass": {0, "--- PASS: TestAlonePart "},
		"fail": {1, "it has failed"},
		"skip": {0, "--- SKIP: TestAlonePart "},
		"exit": {1, "--- FAIL: TestAlonePart "},
	} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestAlonePart$", "-test.v")
			cmd.Env = append(os.Environ(), part+"="+how)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.Contains("\n"+string(out), want.line) {
				t.Errorf("%s: %v, exit code %d, want %d and %q:\n%s", how, err, code, want.code, want.line, out)
			}
		})
	}
}

// However a test was chosen, what it starts runs the one that it asks for.
func TestWithout(t *testing.T) {
	got := without([]string{"-test.run=A", "-test.run", "B", "--test.count", "2", "-test.v", "-test.short", "-compose", "300", "test.run"}, "test.run", "test.count", "test.v")
	if want := []string{"-test.short", "-compose", "300", "test.run"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
