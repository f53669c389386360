package hermetic

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initName is the name under which the program is started again as pid 1.
const initName = "hermetic-init"

// runInside runs this program inside and returns its exit code. An error says
// which capability is missing; no test has run then.
func runInside(limit time.Duration) (code int, err error) {
	args, deadline := withLimit(os.Args, limit)
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return 0, err
	}
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer report.Close()
	cmd := &exec.Cmd{
		Path: exe, Args: append([]string{initName, here}, args...),
		Env:   environment(os.Environ()),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{reportEnd}, SysProcAttr: namespaces(),
	}
	setCloseOnExec()
	noOneWaits := goCommandExit() // before the tests start: it may be killed as soon as they do
	// The signal that pid 1 gets when we exit is sent when the thread ends that
	// started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	groups := NewGroups()
	err = errors.Join(startIn(groups, cmd), reportEnd.Close())
	if err != nil {
		_ = groups.Remove()
		return 0, fmt.Errorf("making namespaces: %w (%s)", err, remedy())
	}
	defer func() {
		if err := groups.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "hermetic: removing the control groups of the tests:", err)
			code = max(code, 1)
		}
	}()
	if b, err := io.ReadAll(report); err != nil || len(b) > 0 {
		_ = cmd.Wait()
		return 0, fmt.Errorf("%s (%s)", b, remedy())
	}
	return waitForTests(cmd, deadline, noOneWaits), nil
}

// startIn starts a program in control groups, which are then the root of its
// cgroup namespace: this process is in them for the moment of the start.
func startIn(g *Groups, cmd *exec.Cmd) error {
	if err := g.Add(os.Getpid()); err != nil {
		return errors.Join(err, g.Return(os.Getpid()))
	}
	return errors.Join(cmd.Start(), g.Return(os.Getpid()))
}

// namespaces are those of the tests. An ordinary user gets them in a user
// namespace that maps each id to itself, with the one capability that pid 1
// needs; the tests have none.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Pdeathsig:  unix.SIGKILL,
	}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return a
}

func remedy() string {
	if os.Geteuid() == 0 {
		return "root needs CAP_SYS_ADMIN: in a container, docker run --privileged"
	}
	return "run the tests as root, or allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns"
}

// grace is for tests that end themselves at their limit, with a list of what
// still ran. Their clock starts when TestMain has built and started what they
// need; after a third of it they get a signal to print what they do, and when
// it is over they are killed.
const grace = 15 * time.Second

// waitForTests waits for the tests, until no one waits for us.
func waitForTests(cmd *exec.Cmd, deadline time.Duration, noOneWaits <-chan struct{}) (code int) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	var late, tooLate <-chan time.Time
	if deadline > 0 {
		grace := min(grace, deadline)
		late, tooLate = time.After(deadline+grace/3), time.After(deadline+grace)
	}
	for {
		select {
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code
			}
			return 2
		case s := <-signals:
			if s != unix.SIGINT { // the terminal sends it to all of us
				_ = cmd.Process.Signal(s)
			}
		case <-noOneWaits:
			_ = cmd.Process.Kill()
			noOneWaits = nil
		case <-late:
			fmt.Fprintf(os.Stderr, "hermetic: the tests did not end within %v; what they do:\n", deadline)
			_ = cmd.Process.Signal(unix.SIGQUIT)
		case <-tooLate:
			fmt.Fprintf(os.Stderr, "hermetic: the tests did not end within %v: killed\n", deadline)
			_ = cmd.Process.Kill()
		}
	}
}

// goCommandExit is closed when the go command that started us exits: when it is
// killed it does not signal us, and the tests would keep running.
func goCommandExit() <-chan struct{} {
	parent := os.Getppid()
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); err != nil || string(name) != "go\n" {
		return nil
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		for {
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); n == 1 || err != unix.EINTR {
				close(ended)
				return
			}
		}
	}()
	return ended
}

// withLimit puts a limit into the arguments of a test binary, unless there is a
// shorter one, and returns the one that holds; 0 is none. Benchmarks, fuzzing
// and -timeout 0 have none.
func withLimit(args []string, limit time.Duration) ([]string, time.Duration) {
	at := -1
	for i, arg := range args {
		switch name, value, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "="); strings.TrimPrefix(name, "-") {
		case "test.fuzz", "test.bench":
			if value != "" {
				return args, 0
			}
		case "test.timeout":
			d, err := time.ParseDuration(value)
			if err != nil || d <= limit {
				return args, max(d, 0) // the tests say what is wrong with it
			}
			at = i
		}
	}
	flag := "-test.timeout=" + limit.String()
	if at < 0 {
		return append([]string{args[0], flag}, args[1:]...), limit
	}
	changed := append([]string(nil), args...)
	changed[at] = flag
	return changed, limit
}

// environment leaves out variables that belong outside, and those that would
// make the programs under test behave differently. Each program with the race
// detector would wait a second at its end.
func environment(outside []string) (inside []string) {
	inside = []string{"GORACE=atexit_sleep_ms=0"} // unless set by the user
	foreign := []string{
		"TMPDIR=", "GOTMPDIR=", "XDG_RUNTIME_DIR=", "NOTIFY_SOCKET=", "LISTEN_", "TMUX",
		"TTMON_", "TT_", "TTNN_", "TESTED_", "NO_COLOR=", "COLUMNS=", "LINES=",
	}
	for _, v := range outside {
		if !hasAnyPrefix(v, foreign) {
			inside = append(inside, v)
		}
	}
	return inside
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
