package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// Allocating puts a program that allocates on command, and the library that it
// is started with, into a directory. The library looks like tt-metal's to
// uprobes; each copy is a file of its own, watched for itself.
func Allocating(dir string) (program, library string, err error) {
	from, err := compileAllocating()
	if err != nil {
		return "", "", err
	}
	program, library = filepath.Join(dir, "program"), filepath.Join(dir, "libtt_metal.so")
	return program, library, copyFiles(dir, filepath.Join(from, "program"), filepath.Join(from, "libtt_metal.so"))
}

// compileAllocating compiles both once for all tests of a package. What it
// makes goes with the tests' own /tmp.
var compileAllocating = sync.OnceValues(func() (dir string, err error) {
	root, err := ttnn.Repository()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "ttmon-allocating-"); err != nil {
		return "", err
	}
	source := filepath.Join(root, "internal/source/uprobe/testdata/fake")
	for _, args := range [][]string{
		// The frame pointer makes functions begin with a push, as tt-metal's do.
		{
			"-shared", "-fPIC", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-schedule-insns2", "-fno-shrink-wrap",
			"-fno-optimize-sibling-calls", "-o", filepath.Join(dir, "libtt_metal.so"), filepath.Join(source, "libtt_metal.c"),
		},
		{"-o", filepath.Join(dir, "program"), filepath.Join(source, "program.c"), "-ldl"},
	} {
		if out, err := exec.Command("gcc", append([]string{"-O2", "-w"}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("compiling a program that allocates: %w\n%s", err, out)
		}
	}
	return dir, nil
})

// copyFiles copies files into a directory, in a process of its own: a program
// that a process of ours has open for writing, if only because it was forked
// at that moment, cannot be started.
func copyFiles(dir string, files ...string) error {
	if out, err := exec.Command("cp", append(files, dir)...).CombinedOutput(); err != nil {
		return fmt.Errorf("copying into %s: %w\n%s", dir, err, out)
	}
	return nil
}
