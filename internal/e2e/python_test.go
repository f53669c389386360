package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonsHere finds the interpreters whose frames libttmon can read.
func pythonsHere(t *testing.T) []string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, minor := range []string{"3.10", "3.11", "3.12", "3.13"} {
		if path, err := exec.LookPath("python" + minor); err == nil && exec.Command(path, "-c", "").Run() == nil {
			found = append(found, path)
			continue
		}
		list, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions", minor+".*", "bin/python"+minor))
		found = append(found, list...)
	}
	if len(found) == 0 {
		t.Skip("no CPython 3.10 to 3.13 here")
	}
	return found
}

// pythonCommand runs a script with more variables.
func pythonCommand(python, script string, env ...string) *exec.Cmd {
	cmd := exec.Command(python, script)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
