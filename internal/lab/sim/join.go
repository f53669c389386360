package sim

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// join enters the namespace of a host and becomes a program in it. It does
// not return unless something is wrong. args: pid of the host, control
// socket, program, its arguments.
func join(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("%s is for ttmon-sim itself; use ttmon-sim exec", joinName)
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("the host's process id %q: %w", args[0], err)
	}
	os.Setenv(ControlEnv, args[1])
	setMock(pid)
	argv := args[2:]
	if same, err := sameUserNamespace(pid); err != nil {
		return err
	} else if !same {
		return joinUser(pid, argv)
	}
	if err := enter(pid); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("running %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

func sameUserNamespace(pid int) (bool, error) {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil {
		return false, fmt.Errorf("the simulated host (process %d) is not there: %w", pid, err)
	}
	ours, err := os.Readlink("/proc/self/ns/user")
	return ours == theirs, err
}

// enter moves this thread, which is the one that will exec, into the mount
// namespace of a process.
func enter(pid int) error {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	runtime.LockOSThread()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the simulated host's namespace: %w", err)
	}
	defer unix.Close(fd)
	// Entering a namespace leads to its outermost root: not ours, where the
	// host was started in a chroot.
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the simulated host's root: %w", err)
	}
	defer unix.Close(root)
	// The threads of a Go program share their working directory, and who
	// shares it may not change namespaces.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unsharing the working directory: %w", err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the simulated host's namespace: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("entering the simulated host's root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("entering the simulated host's root: %w", err)
	}
	if err := unix.Chdir(cwd); err != nil {
		return fmt.Errorf("changing to %s: %w", cwd, err)
	}
	return nil
}

// joinUser enters a host in a user namespace of its own. A program with
// threads may not do that itself, and Go programs have threads.
func joinUser(pid int, argv []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("entering a simulated host without root needs nsenter (util-linux): %w", err)
	}
	args := append([]string{"nsenter", "-t", strconv.Itoa(pid), "-U", "-m", "-r", "--preserve-credentials", "--wd=" + cwd, "--"}, argv...)
	return fmt.Errorf("running %s: %w", nsenter, syscall.Exec(nsenter, args, os.Environ()))
}
