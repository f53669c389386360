package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// benchHistory measures what remembering costs: CPU and memory of ttmond at
// one snapshot a second, scrapes, and a question to the history. The boards
// are files that do not move, and nobody uses them.
func benchHistory(l *lab) error {
	root := filepath.Join(l.dir, "galaxy")
	if out, err := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "--root", root, "--boards", "32xp150a").CombinedOutput(); err != nil {
		return fmt.Errorf("making boards: %w: %s", err, out)
	}
	for _, on := range []bool{false, true} {
		if err := l.history(root, on); err != nil {
			return err
		}
	}
	for _, plain := range []bool{true, false} {
		for _, on := range []bool{false, true} {
			if err := l.busyHost(on, plain); err != nil {
				return err
			}
		}
	}
	fmt.Println("Aim: 1 % of a core, 100 MB with history, 30 MB without. Reads of a simulated host go through FUSE, which costs more than the driver.")
	fmt.Println("As soon as a program with tt-metal runs on the machine, the ring of the kernel's events counts with 8 MB more.")
	return nil
}

// busyHost is ttmond on a host with 64 processes, two on each board: a simulated
// one, or a tree of plain files, whose reads cost what those of sysfs do.
func (l *lab) busyHost(on, plain bool) error {
	// Not in the lab: a simulated host has a /dev/shm of its own.
	dir, err := os.MkdirTemp("", "ttmon-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, pidFile := filepath.Join(dir, "ttmond.toml"), filepath.Join(dir, "pid")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[history]\nenabled = %v\n", on), 0o600); err != nil {
		return err
	}
	args := []string{"--boards", "32xp150a"}
	for i := range 64 {
		args = append(args, "--procs", fmt.Sprintf("name=worker%d,devices=%d,kind=metal,dram=1G,l1=1M", i, i%32))
	}
	root, kind := "/", "simulated"
	if plain {
		root, kind = filepath.Join(dir, "root"), "files"
		args = append(args, "--root", root)
	}
	args = append(args, "--", "sh", "-c", `echo $$ > "$0"; exec "$@"`, pidFile, filepath.Join(l.bin, "ttmond"), "--config", config, "--state-dir", filepath.Join(dir, "state"),
		"--socket", filepath.Join(dir, "api"), "--alloc-socket", filepath.Join(dir, "alloc"), "--listen", "off", "--root", root)
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	pid := 0
	for end := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if b, err := os.ReadFile(pidFile); err == nil {
			_, _ = fmt.Sscan(string(b), &pid)
		}
	}
	if pid == 0 {
		return fmt.Errorf("ttmond did not start on a simulated host")
	}
	share, resident, err := settled(pid)
	if err != nil {
		return err
	}
	fmt.Printf("%s  %s, 64 processes: %.2f %% of a core, %.1f MB resident\n", historyWord(on), kind, share, resident)
	return nil
}

// settled is what a ttmond takes, in percent of a core and MB, after its start.
func settled(pid int) (share, resident float64, err error) {
	time.Sleep(20 * time.Second) // the beginning is no measure
	before, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	const seconds = 20
	time.Sleep(seconds * time.Second)
	after, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	bytes, err := rss(pid)
	return (after - before).Seconds() / seconds * 100, float64(bytes) / 1e6, err
}

func historyWord(on bool) string {
	if on {
		return "with history   "
	}
	return "without history"
}

func (l *lab) history(root string, on bool) error {
	dir := filepath.Join(l.dir, fmt.Sprint("history-", on))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "ttmond.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[history]\nenabled = %v\n", on), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(l.bin, "ttmond"), "--config", config, "--root", root, "--state-dir", filepath.Join(dir, "state"),
		"--socket", filepath.Join(dir, "api"), "--alloc-socket", filepath.Join(dir, "alloc"), "--listen", address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	share, resident, err := settled(cmd.Process.Pid)
	if err != nil {
		return err
	}
	word := historyWord(on)
	fmt.Printf("%s  files, no process: %.2f %% of a core, %.1f MB resident\n", word, share, resident)
	took, size, err := fetch("http://" + address + "/metrics")
	if err != nil {
		return err
	}
	fmt.Printf("%s  a scrape: %s ms, %d KB\n", word, ms(took), size/1000)
	return nil
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
