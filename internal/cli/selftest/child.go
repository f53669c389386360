package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// errStuck: a program could not even be killed, since the driver does not let it
// go.
var errStuck = errors.New("it hangs in the kernel and cannot be killed")

// killWait is how long a program that was killed may take to end.
const killWait = time.Second

// command is a program that the test starts. It has a process group of its own,
// which is killed as a whole when ctx ends: no child of it stays.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = killWait
	return cmd
}

// output runs a program and returns what it wrote to standard output. It returns
// soon after ctx ends, whatever became of the program.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	cmd := command(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	done := make(chan result, 1)
	go func() {
		err := cmd.Wait()
		done <- result{out.Bytes(), err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil, ctx.Err()
	case <-time.After(2 * killWait):
		return nil, errStuck
	}
}
