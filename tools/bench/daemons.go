package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hostOf are the arguments of a simulated host with processes that use its boards.
func hostOf(boards string, processes int) []string {
	args := []string{"--boards", boards}
	for i := range processes {
		args = append(args, "--procs", fmt.Sprintf("name=worker%d,devices=%d,kind=metal,dram=1G,l1=1M", i, i%32))
	}
	return args
}

// startDaemons runs a script that starts daemons on a simulated host, and returns
// their pids, which are in the variables of the script. stop ends them.
func (l *lab) startDaemons(dir string, host []string, script string, variables ...string) (pids []int, stop func(), err error) {
	names := strings.Join(variables, " ")
	script = fmt.Sprintf("cd %[1]s\n%[2]strap 'kill %[3]s' TERM\necho %[3]s >%[1]s/starting && mv %[1]s/starting %[1]s/pids\nwait%[4]s", dir, script, names, strings.Repeat("; wait", len(variables)))
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), append(host, "--", "sh", "-c", script)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(dir, "pids"))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				stop()
				return nil, nil, err
			}
			pids = append(pids, pid)
		}
		return pids, stop, nil
	}
	stop()
	return nil, nil, fmt.Errorf("the daemons did not start on a host with %v", host[:2])
}

// taken is what a process takes, in percent of a core and MB.
type taken struct{ share, resident float64 }

// settled is what processes take after their start.
func settled(pids ...int) ([]taken, error) {
	time.Sleep(20 * time.Second) // the beginning is no measure
	const seconds = 30
	list, before := make([]taken, len(pids)), make([]time.Duration, len(pids))
	for i, pid := range pids {
		var err error
		if before[i], err = cpuWithReaders(pid); err != nil {
			return nil, err
		}
	}
	time.Sleep(seconds * time.Second)
	for i, pid := range pids {
		after, err := cpuWithReaders(pid)
		if err != nil {
			return nil, err
		}
		bytes, err := rss(pid)
		if err != nil {
			return nil, err
		}
		list[i] = taken{(after - before[i]).Seconds() / seconds * 100, float64(bytes) / 1e6}
	}
	return list, nil
}

// cpuWithReaders is the processor time of a process so far, and of those that it
// started and that have ended: ttmond reads devices in such.
func cpuWithReaders(pid int) (time.Duration, error) {
	own, err := cpuTime(pid)
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const user, system, tick = 13, 14, 10 * time.Millisecond // behind the name, cutime and cstime
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	for _, field := range []string{f[user], f[system]} {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return 0, err
		}
		own += time.Duration(n) * tick
	}
	return own, nil
}
