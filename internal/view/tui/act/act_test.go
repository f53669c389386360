package act

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/config"
)

// child starts a process that waits, and its identity.
func child(t *testing.T, env ...string) (*exec.Cmd, Target) {
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
	start, err := startTicks(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, Target{PID: cmd.Process.Pid, StartTicks: start}
}

func TestSignal(t *testing.T) {
	cmd, target := child(t)
	if err := Signal(target, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the child ended with %v", err)
	}
	if err := Signal(target, syscall.SIGTERM); !errors.Is(err, errGone) {
		t.Errorf("signalling a dead process: %v", err)
	}
}

// A process that has the pid but not the start time is somebody else.
func TestSignalNeverHitsAReusedPID(t *testing.T) {
	cmd, target := child(t)
	target.StartTicks--
	if err := Signal(target, syscall.SIGKILL); !errors.Is(err, errReused) {
		t.Errorf("error %v, want %v", err, errReused)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
	if _, err := Environ(target); !errors.Is(err, errReused) {
		t.Errorf("environment of a reused pid: %v", err)
	}
	for _, bad := range []Target{{PID: 0, StartTicks: 1}, {PID: -1, StartTicks: 1}, {PID: target.PID}} {
		if err := Signal(bad, syscall.SIGKILL); err == nil {
			t.Errorf("signalled %+v", bad)
		}
	}
}

func TestEnviron(t *testing.T) {
	_, target := child(t, "TT_METAL_HOME=/opt/tt-metal", "TT_VISIBLE_DEVICES=0,1", "PAD="+strings.Repeat("x", 20<<10))
	env, err := Environ(target)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(env, "TT_METAL_HOME=/opt/tt-metal") || !slices.Contains(env, "TT_VISIBLE_DEVICES=0,1") {
		t.Errorf("environment %q", env)
	}
	if _, err := Environ(Target{PID: 1 << 30, StartTicks: 1}); !errors.Is(err, errGone) {
		t.Errorf("error %v, want %v", err, errGone)
	}
}

func TestDo(t *testing.T) {
	var a Actions
	ctx := context.Background()
	if ev := a.Do(ctx, Kill{Targets: []Target{{PID: 1}}}).(Killed); ev.Errs[0] == nil {
		t.Error("killing without Kill is no error")
	}
	if ev := a.Do(ctx, Save{}).(Saved); ev.Err == nil {
		t.Error("saving without Save is no error")
	}
	if ev := a.Do(ctx, Inspect{}).(Inspected); ev.EnvErr == nil || !errors.Is(ev.BufferErr, ErrUnknown) {
		t.Error("looking up without a way to is no error")
	}
	a = Actions{
		Kill:    func(t Target, _ syscall.Signal) error { return errGone },
		Save:    func(config.Config) (string, error) { return "path", nil },
		Environ: func(Target) ([]string, error) { return []string{"A=b"}, nil },
		Buffers: func(context.Context, Target) ([]Buffer, error) { return []Buffer{{Bytes: 1}}, nil },
	}
	if ev := a.Do(ctx, Kill{Targets: []Target{{PID: 1}, {PID: 2}}}).(Killed); len(ev.Errs) != 2 || !errors.Is(ev.Errs[1], errGone) {
		t.Errorf("Killed %+v", ev)
	}
	if ev := a.Do(ctx, Save{}).(Saved); ev.Path != "path" {
		t.Errorf("Saved %+v", ev)
	}
	if ev := a.Do(ctx, Inspect{}).(Inspected); len(ev.Environ) != 1 || len(ev.Buffers) != 1 {
		t.Errorf("Inspected %+v", ev)
	}
}
