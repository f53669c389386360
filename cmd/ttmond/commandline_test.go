package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The exit codes and messages of the program itself.
func TestCommandLine(t *testing.T) {
	bin := program(t)
	wrong := filepath.Join(t.TempDir(), "ttmond.toml")
	if err := os.WriteFile(wrong, []byte("nonsense = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--version"}, 0, "ttmond version"},
		{[]string{"--help"}, 0, "--reload"},
		{[]string{"--check-config"}, 0, "[alloc]"},
		{[]string{"--check-config", "--config", wrong}, 2, "nonsense"},
		{[]string{"--root", "/nonexistent"}, 2, "root: stat /nonexistent: no such file or directory"},
		{[]string{"--root", wrong}, 2, "root: " + wrong + " is not a directory"},
		{[]string{"--no-such-flag"}, 2, "no-such-flag"},
		{[]string{"something"}, 2, "something"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			cmd := exec.Command(bin, c.args...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
				t.Errorf("exit %d, want %d with %q: %s", code, c.code, c.want, out)
			}
		})
	}
}
