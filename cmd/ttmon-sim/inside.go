package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// runInside runs a command with our standard streams, passes signals on to
// it, and ends with its code. If the host ends first, so does the command.
func runInside(c *exec.Cmd, hostDone <-chan struct{}) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case sig := <-signals:
			if !fromTerminal(sig) {
				c.Process.Signal(sig)
			}
		case <-hostDone:
			hostDone = nil
			fmt.Fprintln(os.Stderr, "ttmon-sim: the simulated host ended by itself")
			c.Process.Signal(syscall.SIGTERM)
		case err := <-ended:
			return codeOf(err)
		}
	}
}

// fromTerminal reports whether a signal is one that the terminal sends to all
// processes in the foreground: the command then has it already.
func fromTerminal(sig os.Signal) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// codeOf turns the end of a command into ours: its code, or 128 and the
// signal that killed it, as shells do.
func codeOf(err error) error {
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return exitError(128 + int(ws.Signal()))
	}
	return exitError(e.ExitCode())
}

// stopSignal delivers the signal that asks us to end.
func stopSignal() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// adopt makes us the parent of whatever the command leaves behind. The
// returned function ends all that, but for the process it is given.
func adopt() (reap func(except int)) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return func(int) {}
	}
	return sim.KillDescendants
}
