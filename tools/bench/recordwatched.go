package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// recordWatched measures the cost of following the allocations of
// an unmodified program: ttmond, the program, and the recorder, at 10 000
// allocations and as many frees a second.
func (l *lab) recordWatched() error {
	n, err := l.ttmond()
	if err != nil {
		return err
	}
	defer n.end()
	w, err := l.startFake()
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.do("make %d 5", 1<<20); err != nil {
		return err
	}
	if err := n.watches(w.cmd.Process.Pid); err != nil {
		fmt.Println("ttmond does not watch here:", err)
		return nil
	}
	alone, hit, err := n.paced(w)
	if err != nil {
		return err
	}
	file := filepath.Join(l.dir, "watched.ttrec")
	cmd := exec.Command(filepath.Join(l.bin, "ttmon"), "record", "--daemon", n.api, "-q", "-o", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	if err := n.followed(); err != nil {
		return err
	}
	before, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	bytes := size(file)
	with, hitWith, err := n.paced(w)
	if err != nil {
		return err
	}
	after, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("10,000 allocations and 10,000 frees a second of an unmodified program:\n")
	fmt.Printf("  no follower:           ttmond %.1f %% of a core, the program %.0f ns for both\n", alone, hit)
	fmt.Printf("  ttmon record follows:  ttmond %.1f %% of a core, the program %.0f ns for both; the recorder %.1f %%, %.1f KB/s\n",
		with, hitWith, (after-before).Seconds()/pacedSeconds*100, float64(size(file)-bytes)/pacedSeconds/1e3)
	return nil
}

const pacedSeconds = 8

// paced lets a program allocate, and tells what share of a core ttmond took, and
// what CPU time an allocation and its free took the program, in ns.
func (n *node) paced(w *fakeMetal) (share, round float64, err error) {
	before, err := cpuTime(n.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	if round, err = w.do("loop %d %d", pacedSeconds*10_000, 10_000); err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(n.cmd.Process.Pid)
	return (after - before).Seconds() / pacedSeconds * 100, round, err
}

// watches waits until ttmond watches a process.
func (n *node) watches(pid int) error {
	var state struct {
		Uprobe struct {
			State, Reason string
			Processes     int
		}
	}
	for range 200 {
		if err := n.health(&state); err != nil {
			return err
		}
		if state.Uprobe.State != "on" {
			return fmt.Errorf("%s", state.Uprobe.Reason)
		}
		if state.Uprobe.Processes > 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("it never saw process %s", strconv.Itoa(pid))
}

// followed waits until a client follows allocations.
func (n *node) followed() error {
	for range 200 {
		var state struct {
			Budgets []struct {
				Name string
				Used int
			}
		}
		if err := n.health(&state); err != nil {
			return err
		}
		for _, b := range state.Budgets {
			if b.Name == "api_followers" && b.Used > 0 {
				return nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no client follows the ttmond at %s", n.api)
}
