package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// waiting starts a process that waits, and tells its identity.
func waiting(t *testing.T, env ...string) (*exec.Cmd, model.ProcessID) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo ready; read nothing") // an exec would have no environment for a moment
	cmd.Env = append(os.Environ(), env...)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the child says nothing")
	}
	stat, err := ReadStat(rootFS, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, model.ProcessID{PID: cmd.Process.Pid, StartTicks: stat.Start}
}

func TestSignal(t *testing.T) {
	cmd, target := waiting(t)
	if err := Signal(target, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the child ended with %v", err)
	}
	if err := Signal(target, syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signalling a dead process: %v", err)
	}
}

// A process that has the pid but not the start time is another one.
func TestSignalNeverHitsAReusedPID(t *testing.T) {
	cmd, target := waiting(t)
	target.StartTicks--
	if err := Signal(target, syscall.SIGKILL); !errors.Is(err, ErrReused) {
		t.Errorf("error %v, want %v", err, ErrReused)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
	if _, err := EnvironOf(target); !errors.Is(err, ErrReused) {
		t.Errorf("environment of a reused pid: %v", err)
	}
	for _, bad := range []model.ProcessID{{PID: 0, StartTicks: 1}, {PID: -1, StartTicks: 1}, {PID: target.PID}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			if err := Signal(bad, syscall.SIGKILL); err == nil {
				t.Errorf("signalled %+v", bad)
			}
		})
	}
}

func TestEnvironOf(t *testing.T) {
	_, target := waiting(t, "TT_METAL_HOME=/opt/tt-metal", "TT_VISIBLE_DEVICES=0,1", "PAD="+strings.Repeat("x", 20<<10))
	env, err := EnvironOf(target)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(env, "TT_METAL_HOME=/opt/tt-metal") || !slices.Contains(env, "TT_VISIBLE_DEVICES=0,1") {
		t.Errorf("environment %q", env)
	}
	if _, err := EnvironOf(model.ProcessID{PID: 1 << 30, StartTicks: 1}); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want %v", err, ErrGone)
	}
}
