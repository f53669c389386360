package metal

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// box is where a workload lives: as which user, and in what kind of container.
type box struct {
	container  bool
	pid        int
	privateShm bool
	uid        int
	inside     bool
	mustBe     int
}

func (b *box) flags(flags *flag.FlagSet) {
	flags.BoolVar(&b.container, "container", false, "run in a pid and mount namespace of its own")
	flags.IntVar(&b.pid, "pid", 0, "have this pid in the container (default 1)")
	flags.BoolVar(&b.privateShm, "private-shm", false, "the container has its own /dev/shm")
	flags.IntVar(&b.uid, "uid", 0, "run as this user")
	flags.BoolVar(&b.inside, "inside", false, "the namespaces are made (internal)")
	flags.IntVar(&b.mustBe, "must-be", 0, "end at once unless this is our pid (internal)")
}

func (b *box) wanted() bool { return b.container || b.uid != 0 }

// enter starts the program again where it is wanted, with the flags of the
// box taken out of args, and takes its place until it ends.
func (b *box) enter(args []string) error {
	switch {
	case b.container && !b.inside:
		return b.makeContainer(args)
	case b.container:
		if err := b.furnish(); err != nil {
			return err
		}
		if b.pid > 1 {
			return b.startAs(withoutBox(args))
		}
	}
	if err := b.becomeUser(); err != nil {
		return err
	}
	argv := append([]string{childName}, withoutBox(args)...)
	return unix.Exec("/proc/self/exe", argv, os.Environ())
}

// makeContainer makes the namespaces and waits for their end.
func (b *box) makeContainer(args []string) error {
	cmd := again(append([]string{"--inside"}, args...))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	return exitOf(cmd.Run())
}

// furnish mounts what a container runtime would.
func (b *box) furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if !b.privateShm {
		return nil
	}
	if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777"); err != nil {
		return fmt.Errorf("mounting /dev/shm: %w", err)
	}
	return nil
}

// startAs gives the program the wanted pid: the namespace's next one. No one
// else in there makes processes, but new threads of ours take numbers too;
// then the program ends before it reads any command, and is started again. A
// thread that has the wanted number itself ends with an exec only.
func (b *box) startAs(args []string) error {
	args = append([]string{"--must-be=" + strconv.Itoa(b.pid)}, args...)
	got := 0
	for range 100 {
		last := strconv.Itoa(b.pid - 1)
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(last), 0); err != nil {
			return err
		}
		cmd := again(args)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if b.uid != 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if got = cmd.Process.Pid; got == b.pid {
			return exitOf(cmd.Wait())
		}
		_ = cmd.Wait()
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(b.pid)); err == nil {
			return unix.Exec("/proc/self/exe", os.Args, os.Environ())
		}
	}
	return fmt.Errorf("the process got pid %d, not %d", got, b.pid)
}

func (b *box) becomeUser() error {
	if b.uid == 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(b.uid), syscall.Setuid(b.uid))
}

// again is this program, started again as a workload.
func again(args []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = childName
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// exitOf passes on that the inner program failed; it has said why.
func exitOf(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("the workload ended: %v", exit)
	}
	return err
}

// withoutBox removes the flags of the box, in any of their spellings.
func withoutBox(args []string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		name, value := splitFlag(args[i])
		switch {
		case slices.Contains([]string{"container", "private-shm", "inside"}, name):
		case slices.Contains([]string{"pid", "uid"}, name):
			if !value {
				i++ // the value is the next word
			}
		default:
			rest = append(rest, args[i])
			if (name == "e" || name == "shm" || name == "layout") && !value && i+1 < len(args) {
				i++
				rest = append(rest, args[i])
			}
		}
	}
	return rest
}

// splitFlag takes "--name=value" apart; value reports whether there was one.
func splitFlag(arg string) (name string, value bool) {
	if len(arg) < 2 || arg[0] != '-' {
		return "", false
	}
	name = arg[1:]
	if name[0] == '-' {
		name = name[1:]
	}
	for i := range name {
		if name[i] == '=' {
			return name[:i], true
		}
	}
	return name, false
}
