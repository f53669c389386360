package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// firmwareModes are what is compared: each is a ttmond of its own, on one host, at
// the same time, so that a noisy moment hits all of them alike.
var firmwareModes = []string{"off", "table", "full"}

// benchFirmware measures what reading the chips' own tables costs: ttmond and the
// processes that it starts to read, next to a ttmond that reads none.
func benchFirmware(l *lab) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "boards\toff, % of a core\ttable\tmore in ttmond\tmore in readers\tfull\tmore in ttmond\tmore in readers\ttable : off\tfull : off\t")
	for _, boards := range []string{"1xn150", "8xn150", "32xn150", "1xp150a", "8xp150a", "32xp150a"} {
		took, err := l.firmware(boards)
		if err != nil {
			return fmt.Errorf("%s: %w", boards, err)
		}
		off, table, full := took[0], took[1], took[2]
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", boards, off.sum(),
			table.sum(), table.daemon-off.daemon, table.children-off.children, full.sum(), full.daemon-off.daemon, full.children-off.children,
			table.sum()/off.sum(), full.sum()/off.sum())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("Three ttmond on one simulated host at the same time, one snapshot a second, no program on the chips: full reads what table does")
	fmt.Println("then. n150 is read by its PCI file, p150a by its node. The chips themselves are ttmon-sim's, whose time does not count.")
	return nil
}

// firmwareCost is what a ttmond takes, in percent of a core, and what the processes
// take that it starts: readers of chips, and those that look at files for it.
type firmwareCost struct{ daemon, children float64 }

func (c firmwareCost) sum() float64 { return c.daemon + c.children }

// firmware measures all modes on one host.
func (l *lab) firmware(boards string) ([]firmwareCost, error) {
	dir, err := os.MkdirTemp("", "ttmon-bench-") // not in the lab: a simulated host has a /dev/shm of its own
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var script strings.Builder
	for _, mode := range firmwareModes {
		fmt.Fprintf(&script, "%s/ttmond --no-uprobe --firmware %[2]s --socket %[3]s/%[2]s.sock --alloc-socket %[3]s/%[2]s.alloc --state-dir %[3]s/%[2]s 2>/dev/null & echo $! >>%[3]s/pids\n", l.bin, mode, dir)
	}
	script.WriteString("trap 'kill $(cat " + dir + "/pids)' TERM; wait; wait\n")
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "--boards", boards, "--", "sh", "-c", script.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	pids := make([]int, len(firmwareModes))
	for end := time.Now().Add(time.Minute); pids[2] == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return nil, fmt.Errorf("the daemons did not start")
		}
		if b, err := os.ReadFile(filepath.Join(dir, "pids")); err == nil {
			_, _ = fmt.Sscan(string(b), &pids[0], &pids[1], &pids[2])
		}
	}
	time.Sleep(15 * time.Second) // the beginning is no measure
	before, err := firmwareTimes(pids)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	time.Sleep(30 * time.Second) // six samples
	after, err := firmwareTimes(pids)
	if err != nil {
		return nil, err
	}
	share := 100 / time.Since(begun).Seconds()
	costs := make([]firmwareCost, len(pids))
	for i := range pids {
		costs[i] = firmwareCost{(after[i].own - before[i].own).Seconds() * share, (after[i].children - before[i].children).Seconds() * share}
	}
	return costs, nil
}

// firmwareTime is the processor time of a ttmond and of its children that have
// ended.
type firmwareTime struct{ own, children time.Duration }

func firmwareTimes(pids []int) ([]firmwareTime, error) {
	list := make([]firmwareTime, len(pids))
	for i, pid := range pids {
		own, err := cpuTime(pid)
		if err != nil {
			return nil, err
		}
		children, err := childrenTime(pid)
		if err != nil {
			return nil, err
		}
		list[i] = firmwareTime{own, children}
	}
	return list, nil
}

// childrenTime is the processor time of a process's children that it has waited
// for. The kernel adds them up to the nanosecond and shows hundredths of a second.
func childrenTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	const childUser = 13 // of the fields behind the name
	if len(fields) < childUser+2 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[childUser]+" "+fields[childUser+1], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * time.Second / clockTicks, nil
}

// clockTicks is USER_HZ, which is the same on every architecture that Go runs on.
const clockTicks = 100
