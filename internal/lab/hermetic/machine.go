package hermetic

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// StartInit runs a shell script as process 1 of namespaces and control groups
// of its own, for a test that boots a systemd: the script ends in the exec of
// it. Everything there is killed when the test ends. It returns the number that
// the process has here. output gets what is printed.
func StartInit(t testing.TB, output io.Writer, script string, args ...string) (pid1 int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to run a process 1")
	}
	groups := NewGroups()
	t.Cleanup(func() {
		if err := groups.Remove(); err != nil {
			t.Errorf("removing the control groups of a test: %v", err)
		}
	})
	// It waits until it is in its groups: a cgroup namespace begins where its maker is.
	const unshare = `read -r _; exec unshare --mount --pid --fork --uts --ipc --cgroup --mount-proc --kill-child sh -euc "$@"`
	script = "mount --make-rprivate /\n" + MountGroups + script
	cmd := exec.Command("sh", append([]string{"-c", unshare, "sh", script, "sh"}, args...)...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid1 != 0 {
			_ = syscall.Kill(pid1, syscall.SIGKILL) // and everything with it
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := groups.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(stdin); err != nil {
		t.Fatal(err)
	}
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	for ; pid1 == 0; time.Sleep(5 * time.Millisecond) {
		if t.Context().Err() != nil || cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("process 1 did not start")
		}
		b, _ := os.ReadFile(children)
		pid1, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	return pid1
}
