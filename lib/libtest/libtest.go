// Package libtest builds libttmon and the program lib/test/driver.c with the
// machine's C compiler, and drives that program, for tests of everything that
// reads ledgers. No program links it.
package libtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root is the root of the source tree that the test runs in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}

// Compiler returns the C compiler, or an error that says what is missing.
func Compiler() (string, error) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	path, err := exec.LookPath(cc)
	if err != nil {
		return "", fmt.Errorf("no C compiler: %w", err)
	}
	return path, nil
}

// Build builds the driver into dir: plain, asan, tsan or static (see lib/test/build).
func Build(dir, kind string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(root, "lib/test/build"), dir, kind).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the driver (%s): %w\n%s", kind, err, out)
	}
	return nil
}

// Driver is a running driver.
type Driver struct {
	Cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts a command that is or becomes the driver.
func Start(cmd *exec.Cmd) (d *Driver, err error) {
	d = &Driver{Cmd: cmd}
	if d.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewReader(out)
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	return d, cmd.Start()
}

// Tell sends a line without waiting for the answer.
func (d *Driver) Tell(format string, args ...any) error {
	_, err := fmt.Fprintf(d.in, format+"\n", args...)
	return err
}

// Answer waits for a line.
func (d *Driver) Answer() (string, error) {
	line, err := d.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// Do sends a line and waits for the answer.
func (d *Driver) Do(format string, args ...any) (string, error) {
	if err := d.Tell(format, args...); err != nil {
		return "", err
	}
	return d.Answer()
}

// End closes its input, at which it exits cleanly, and waits.
func (d *Driver) End() error {
	d.in.Close()
	return d.Cmd.Wait()
}

// Kill kills it, and waits.
func (d *Driver) Kill() {
	_ = d.Cmd.Process.Kill()
	_ = d.Cmd.Wait()
}

// BlockBytes is what the driver asks for at an address.
func BlockBytes(address uint64) uint64 {
	return 64 + address/4096*2654435761%63*64
}
