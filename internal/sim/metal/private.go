package metal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A program gets a /dev/shm of its own in three steps. It starts itself, under
// the name privateName, in a new mount namespace; that one mounts and becomes
// the program again, with privateMark naming the namespace it made. Only the
// second step mounts anything, only if it is in another namespace than the
// program that started it, and only a mark that names the namespace one is in
// means anything: nothing in the environment can make it mount over the
// /dev/shm that everybody uses.
const (
	privateName = "metal-private"
	privateMark = "TTMON_PRIVATE_SHM"
)

// InPrivateShm runs this program once more with an empty /dev/shm of its own,
// in a mount namespace, and returns its exit code and true. In that second run
// it returns false, and the program does its work. It is for TestMain, after
// Reexec: tests then meet no regions but their own, and leave none behind.
// Fuzzing runs where it is: its workers talk over descriptors that a second
// run would lose.
func InPrivateShm() (code int, done bool) {
	if HasPrivateShm() || fuzzing() {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe", append([]string{mountNamespace()}, os.Args...)...)
	cmd.Args[0] = privateName
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	// The terminal sends its signals to both; the second run answers them.
	signal.Ignore(os.Interrupt, unix.SIGQUIT)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "running with a private /dev/shm: %v\n", err)
		return 1, true
	}
	return cmd.ProcessState.ExitCode(), true
}

// HasPrivateShm tells whether this is such a second run. What clears /dev/shm
// must ask: everywhere else it is everybody's.
func HasPrivateShm() bool {
	made := os.Getenv(privateMark)
	return made != "" && made == mountNamespace()
}

func mountNamespace() string {
	link, _ := os.Readlink("/proc/self/ns/mnt")
	return link
}

func fuzzing() bool {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.fuzz=") && arg != "-test.fuzz=" || strings.HasPrefix(arg, "-test.fuzzworker") {
			return true
		}
	}
	return false
}

// becomePrivate is the second step: args are the namespace that was left, and
// the program's own.
func becomePrivate(args []string) error {
	here := mountNamespace()
	if len(args) < 2 || here == "" || args[0] == "" || args[0] == here {
		return errors.New("no mount namespace was made: nothing is mounted")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("mounting a private /dev/shm: %w", err)
	}
	if err := os.Setenv(privateMark, here); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", args[1:], os.Environ())
}
