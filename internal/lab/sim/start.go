package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ControlEnv names the control socket to programs inside a simulated host.
const ControlEnv = "TTMON_SIM_CONTROL"

// Names under which a program is started again to be part of a host.
const (
	hostName = "ttmon-sim-host"
	joinName = "ttmon-sim-join"
)

// Host is a running simulated host.
type Host struct {
	Control string // path of the control socket
	PID     int    // of the process that holds the namespace

	exe    string
	dir    string // the host's own, which it removes itself unless it was killed
	cmd    *exec.Cmd
	life   io.Closer // the host ends when this is closed, however that happens
	exited chan struct{}
	stderr *bytes.Buffer
	close  sync.Once
	err    error
}

// config is what the host process reads from its standard input.
type config struct {
	Options
	Dir   string // the host's own directory, made by Start
	Outer string // our mount namespace, which must not be the host's
}

// ready is what the host process answers with.
type ready struct {
	Control string
	Error   string
	Missing string // which privilege, if that was it
}

// NoPrivilegeError says which privilege a simulated host lacks.
type NoPrivilegeError struct {
	Missing string
	Err     error
}

func (e *NoPrivilegeError) Error() string {
	return fmt.Sprintf("no simulated host without %s: %v", e.Missing, e.Err)
}

func (e *NoPrivilegeError) Unwrap() error { return e.Err }

// OptionError is a mistake in Options.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// Start starts a simulated host and returns when its files are in place. The
// caller must Close it; it also ends when the calling process does.
func Start(o Options) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, &OptionError{err}
	}
	exe, err := program(o.Exe)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ttmon-sim-")
	if err != nil {
		return nil, err
	}
	h := &Host{exe: exe, dir: dir, exited: make(chan struct{}), stderr: new(bytes.Buffer)}
	if err := h.start(o, dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return h, nil
}

// program is the one to be started again: exe, or the running one.
func program(exe string) (string, error) {
	if exe != "" {
		return exe, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	return self, nil
}

// Attach returns a host that another process holds, to run commands in it and
// to control it. Closing it does nothing.
func Attach(socket string) (*Host, error) {
	a, err := call(socket, []string{"list"})
	if err != nil {
		return nil, err
	}
	exe, err := program("")
	if err != nil {
		return nil, err
	}
	return &Host{Control: socket, PID: a.PID, exe: exe}, nil
}

func (h *Host) start(o Options, dir string) error {
	outer, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	answer, answerEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()
	h.cmd = &exec.Cmd{
		Path: h.exe, Args: []string{hostName, o.Boards},
		ExtraFiles:  []*os.File{answerEnd},
		Stderr:      io.Writer(h.stderr),
		SysProcAttr: namespaces(),
	}
	if o.Stderr != nil {
		h.cmd.Stderr = o.Stderr
	}
	stdin, err := h.cmd.StdinPipe()
	if err != nil {
		answerEnd.Close()
		return err
	}
	h.life = stdin
	err = h.cmd.Start()
	answerEnd.Close()
	if err != nil {
		return explainStart(err)
	}
	go func() { h.err = h.cmd.Wait(); close(h.exited) }()
	h.PID = h.cmd.Process.Pid
	if err := json.NewEncoder(stdin).Encode(config{Options: o, Dir: dir, Outer: outer}); err != nil {
		return h.failed(err)
	}
	var r ready
	if err := json.NewDecoder(answer).Decode(&r); err != nil {
		return h.failed(err)
	}
	if r.Error != "" {
		h.Close()
		if r.Missing != "" {
			return &NoPrivilegeError{r.Missing, errors.New(r.Error)}
		}
		return fmt.Errorf("starting a simulated host: %s", r.Error)
	}
	h.Control = r.Control
	return nil
}

// failed ends a host that did not get as far as answering.
func (h *Host) failed(err error) error {
	h.Close()
	return fmt.Errorf("the simulated host died while starting: %w\n%s", err, h.stderr)
}

// namespaces asks for a mount namespace, and for a user namespace where we
// may not have the former without it.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setpgid: true}
	if !maySetMounts() {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// maySetMounts reports whether we have CAP_SYS_ADMIN.
func maySetMounts() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&hdr, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

func explainStart(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EINVAL):
		missing := "CAP_SYS_ADMIN (root)"
		if !maySetMounts() {
			missing += ", or user namespaces for ordinary users (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, AppArmor)"
		}
		return &NoPrivilegeError{missing, err}
	}
	return fmt.Errorf("starting the simulated host's process: %w", err)
}

// Command makes a command that runs inside the simulated host, with name
// looked up there. It becomes the named program without a process between,
// so that its pid is Cmd.Process.Pid.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.exe)
	cmd.Args = append([]string{joinName, strconv.Itoa(h.PID), h.Control, name}, args...)
	return cmd
}

// Done is closed when the host's process has ended. It is nil for a host that
// we attached to.
func (h *Host) Done() <-chan struct{} { return h.exited }

// Close ends the host with everything that runs in it. Closing twice is fine.
func (h *Host) Close() error {
	if h.cmd == nil {
		return nil // attached: not ours to end
	}
	h.close.Do(func() {
		h.life.Close()
		select {
		case <-h.exited:
		case <-time.After(time.Minute):
			h.cmd.Process.Kill()
			<-h.exited
		}
		os.RemoveAll(h.dir)
	})
	if h.err != nil {
		return fmt.Errorf("the simulated host: %w\n%s", h.err, h.stderr)
	}
	return nil
}

// control is where the host listens.
func (c config) control() string {
	if c.Options.Control != "" {
		return c.Options.Control
	}
	return filepath.Join(c.Dir, "control")
}

// Root is a directory through which the host's files can be reached from
// outside its namespace: Root() + "/sys/class/tenstorrent". It takes the
// privilege of a debugger over the host's process.
func (h *Host) Root() string { return fmt.Sprintf("/proc/%d/root", h.PID) }
