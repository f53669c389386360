package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// The test binary is ttmon, and tt-smi, when it is called by that name.
func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	testscript.Main(m, map[string]func(){
		"ttmon": main, "tt-smi": main,
		"metal": func() { os.Exit(metal.Main(os.Args[1:])) }, // a tt-metal process, for what it leaves behind
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *golden.Update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("TZ", "UTC")
			e.Setenv("TTMON_TIMEOUT", "20s") // the machine may be busy
			e.Setenv("COLUMNS", "")
			e.Setenv("ESC", "\x1b[2J")
			return hosts(e.WorkDir)
		},
		Condition: func(cond string) (bool, error) {
			if cond != "namespaces" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return exec.Command("unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm").Run() == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code},
	})
}

// code N CMD ARG…: runs a command that must exit with N.
func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// binary is the program under test, as a file that can be run.
func binary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ttmon")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}
