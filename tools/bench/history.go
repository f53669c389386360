package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// benchHistory measures what both halves cost: CPU and memory of ttmond and of
// ttmon-server at one snapshot a second, and scrapes. The boards are files that do
// not move; on the last hosts 64 processes use them.
func benchHistory(l *lab) error {
	for _, c := range []struct {
		boards    string
		processes int
		simulated bool
	}{
		{"1xp150a", 0, false},
		{"8xp150a", 0, false},
		{"32xp150a", 0, false},
		{"32xp150a", 64, false},
		{"32xp150a", 64, true},
	} {
		if err := l.halves(c.boards, c.processes, c.simulated); err != nil {
			return err
		}
	}
	fmt.Println("Aim, both together: 1 % of a core with 32 boards; 15 MB of ttmond. When one daemon did it all, on an idle machine: 0.56 % with 32 boards, 0.95 to 1.03 % and 49 MB with 64 processes.")
	fmt.Println("Reads of a simulated host go through FUSE, which costs more than the driver. As soon as a program with tt-metal runs on the")
	fmt.Println("machine, the ring of the kernel's events counts with 8 MB more.")
	return nil
}

// halves measures a ttmond and the ttmon-server that follows it.
func (l *lab) halves(boards string, processes int, simulated bool) error {
	// Not in the lab: a simulated host has a /dev/shm of its own.
	dir, err := os.MkdirTemp("", "ttmon-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address, err := freeAddress()
	if err != nil {
		return err
	}
	args := hostOf(boards, processes)
	root, kind := "/", "simulated"
	if !simulated {
		root, kind = filepath.Join(dir, "root"), "files"
		args = append(args, "--root", root)
	}
	script := fmt.Sprintf(`%[2]s/ttmond --root %[3]s --socket %[1]s/ttmond.sock --alloc-socket %[1]s/alloc --state-dir %[1]s/ttmond 2>/dev/null & a=$!
%[2]s/ttmon-server --daemon %[1]s/ttmond.sock --socket %[1]s/server.sock --state-dir %[1]s/state --listen %[4]s 2>/dev/null & b=$!
`, dir, l.bin, root, address)
	pids, stop, err := l.startDaemons(dir, args, script, "$a", "$b")
	if err != nil {
		return err
	}
	defer stop()
	figures, err := settled(pids...)
	if err != nil {
		return err
	}
	d, s := figures[0], figures[1]
	fmt.Printf("%-9s %-8s %2d processes: ttmond %.2f %% of a core, %.1f MB; ttmon-server %.2f %%, %.1f MB; both %.2f %%\n",
		kind, boards, processes, d.share, d.resident, s.share, s.resident, d.share+s.share)
	took, size, err := fetch("http://" + address + "/metrics")
	if err == nil {
		fmt.Printf("%-9s %-8s a scrape: %s ms, %d KB\n", kind, boards, ms(took), size/1000)
	}
	return err
}

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

// fetch asks for a page a few times and returns the best.
func fetch(url string) (best time.Duration, size int, err error) {
	for i := range 5 {
		begun := time.Now()
		r, err := http.Get(url)
		if err != nil {
			return 0, 0, err
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 {
			return 0, 0, fmt.Errorf("%s: %s %s %w", url, r.Status, strings.TrimSpace(string(b[:min(len(b), 200)])), err)
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
		size = len(b)
		time.Sleep(100 * time.Millisecond)
	}
	return best, size, nil
}
