package metal

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// privateMark tells the second run of a program from the first.
const privateMark = "TTMON_PRIVATE_SHM"

// InPrivateShm runs this program once more with an empty /dev/shm of its own,
// in a mount namespace, and returns its exit code and true. In that second run
// it returns false, and the program does its work. It is for TestMain: tests
// then meet no regions but their own, and leave none behind. Fuzzing runs
// where it is: its workers talk over descriptors that a second run would lose.
func InPrivateShm() (code int, done bool) {
	if os.Getenv(privateMark) != "" {
		if err := coverShm(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true
		}
		return 0, false
	}
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.fuzz=") && arg != "-test.fuzz=" || strings.HasPrefix(arg, "-test.fuzzworker") {
			return 0, false
		}
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), privateMark+"=1")
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

func coverShm() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("mounting a private /dev/shm: %w", err)
	}
	return nil
}
