package metal

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
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
	stage      stage
	mustBe     int
}

func (b *box) flags(flags *flag.FlagSet) {
	flags.BoolVar(&b.container, "container", false, "run in a pid and mount namespace of its own")
	flags.IntVar(&b.pid, "pid", 0, "have this pid in the container (default 1)")
	flags.BoolVar(&b.privateShm, "private-shm", false, "the container has its own /dev/shm")
	flags.IntVar(&b.uid, "uid", 0, "run as this user")
	flags.IntVar((*int)(&b.stage), "stage", 0, "how far the box is made (internal)")
	flags.IntVar(&b.mustBe, "must-be", 0, "end at once unless this is our pid (internal)")
}

// stage is how far a box is made when the program is started again.
type stage int

const (
	outside stage = iota
	inNamespaces
	inBox // it is where it is wanted
)

// then says in the arguments of the program how far the box is made now.
func (s stage) then(args []string) []string { return append(args, fmt.Sprintf("--stage=%d", s)) }

func (b *box) wanted() bool { return b.stage != inBox && (b.container || b.uid != 0) }

// enter starts the program again where it is wanted, and takes its place until
// it ends.
func (b *box) enter(args []string) error {
	switch {
	case b.container && b.stage == outside:
		return b.makeContainer(inNamespaces.then(args))
	case b.container:
		if err := Furnish(true, b.privateShm); err != nil {
			return err
		}
		if b.pid > 1 {
			return b.startAs(inBox.then(args))
		}
	}
	if err := b.becomeUser(); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", append([]string{childName}, inBox.then(args)...), os.Environ())
}

// makeContainer makes the namespaces and waits for their end.
func (b *box) makeContainer(args []string) error {
	cmd := again(args)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	return exitOf(cmd.Run())
}

// Furnish mounts what a container runtime would, in a mount namespace that was
// just made: a /proc of its own pid namespace, a /dev/shm.
func Furnish(ownProc, ownShm bool) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if ownProc { // or the pids in it would be another's
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return fmt.Errorf("mounting a /proc of its own: %w", err)
		}
	}
	if !ownShm {
		return nil
	}
	if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777"); err != nil {
		return fmt.Errorf("mounting a /dev/shm of its own: %w", err)
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
