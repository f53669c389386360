package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// A root that is not there is an error of the command line, not a host without
// boards.
func TestRootThatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ root, want string }{
		"missing": {"/nonexistent", "root: stat /nonexistent: no such file or directory"},
		"a file":  {file, "root: " + file + " is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command()
			cmd.SetOut(new(bytes.Buffer))
			cmd.SetArgs([]string{"--check-config", "--root", tt.root})
			err := cmd.Execute()
			if _, usage := errors.AsType[daemon.UsageError](err); !usage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error of the command line with %q", err, tt.want)
			}
		})
	}
}
