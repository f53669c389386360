package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Attacks with what processes say of themselves: blocks of an allocator that is
// none, jobs that are others', and files in the place of recordings.

// attackBlocks runs processes that hold as many blocks as their allocator can
// have, and children that hit probes and stay; the oldest are replaced all the time.
func attackBlocks(place) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	const processes, blocks, children = 64 / fewer, 39_000 / fewer, 200 / fewer
	var alive []*exec.Cmd
	for n := 0; ; n++ {
		cmd, err := startAllocator(filepath.Dir(self), fmt.Sprintf("make %d 5", 1<<40), fmt.Sprintf("fill %d 64", blocks), fmt.Sprintf("writers %d 64", children))
		if err != nil {
			return err
		}
		if alive = append(alive, cmd); len(alive) > processes {
			_ = alive[0].Process.Kill()
			_ = alive[0].Wait()
			alive = alive[1:]
		}
		if n == 2 {
			ready()
		}
	}
}

// startAllocator starts the program that looks like one of tt-metal, and lets it
// do something.
func startAllocator(dir string, commands ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(dir, "program"), filepath.Join(dir, "libtt_metal.so"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	answers := bufio.NewReader(out)
	for _, line := range append([]string{""}, commands...) {
		if line != "" {
			fmt.Fprintln(in, line)
		}
		if _, err := answers.ReadString('\n'); err != nil { // the first one says that it is there
			return nil, err
		}
	}
	return cmd, nil
}

// forgedJob is the job of root's that attackJobs claims to belong to.
const forgedJob = "4711"

// attackJobs runs processes that claim to belong to a job of another user's, and
// report memory, so that they are seen.
func attackJobs(p place) error {
	if os.Getenv("SLURM_JOB_ID") == forgedJob {
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		for k := uint64(0); ; k++ {
			if err := sendAll(fd, frame(144, 1, rootDevice+1, 10, 0, os.Getpid(), 1<<32+k%64*64)); err != nil {
				return err
			}
			if k == 0 {
				ready()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for range 20 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "SLURM_JOB_ID="+forgedJob, "SLURM_STEP_ID=0", "SLURM_JOB_USER=root")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = io.ReadFull(out, make([]byte, len("ready\n")))
		}
		if err != nil {
			return err
		}
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// fifoDir is where everybody finds what attackFifos makes, and fifoPath the
// recording in it.
func (p place) fifoDir() string { return filepath.Dir(p.alloc) }

func (p place) fifoPath() string {
	return filepath.Join(p.fifoDir(), fmt.Sprintf("recording-%d", os.Getuid()))
}

// attackFifos replaces a recording with one thing after the other: nothing that was
// inspected is still there when it is opened.
func attackFifos(p place) error {
	path := p.fifoPath()
	for n := 0; ; n++ {
		next := fmt.Sprintf("%s.%d", path, n%5)
		_ = os.RemoveAll(next)
		var err error
		switch n % 5 {
		case 0:
			err = os.WriteFile(next, []byte("no recording"), 0o644)
		case 1:
			err = unix.Mkfifo(next, 0o666)
		case 2:
			err = os.Symlink("/dev/zero", next)
		case 3:
			err = os.Symlink(fmt.Sprintf("%s.%d", path, 1), next) // a fifo, at times
		case 4:
			var l net.Listener
			if l, err = net.Listen("unix", next); err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				l.Close()
			}
		}
		if err = errors.Join(err, os.Rename(next, path)); err != nil {
			return err
		}
		if n == 5 {
			ready()
		}
		time.Sleep(100 * time.Microsecond)
	}
}
