package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// benchTop measures what the screens cost at 1 Hz on a terminal of 200 by 50,
// next to reading the same host without drawing it and, where it is
// installed, next to nvtop on the same simulated host.
func benchTop(l *lab) error {
	const lasts = 15 * time.Second
	nvtop, _ := exec.LookPath("nvtop")
	if nvtop == "" {
		fmt.Println("nvtop is not installed: ttmon only")
	}
	fmt.Printf("%-16s %22s %22s %14s", "% of a core", "ttmon top", "reading alone", "to the tty")
	if nvtop != "" {
		fmt.Printf(" %22s", "nvtop")
	}
	fmt.Println()
	for _, boards := range []string{"p150a", "8xn150", "galaxy-wormhole"} {
		top, err := l.onTerminal(boards, lasts, filepath.Join(l.bin, "ttmon"), "top")
		if err != nil {
			return err
		}
		read, err := l.onTerminal(boards, lasts, "sh", "-c", "exec "+filepath.Join(l.bin, "ttmon")+" smi --json -l 1 > /dev/null")
		if err != nil {
			return err
		}
		fmt.Printf("%-16s %22s %22s %9.1f KB/s", boards, top, read, float64(top.bytes)/lasts.Seconds()/1e3)
		if nvtop != "" {
			peer, err := l.onTerminal(boards, lasts, nvtop)
			if err != nil {
				return err
			}
			fmt.Printf(" %22s", peer)
		}
		fmt.Println()
	}
	return nil
}

// load is what a program took over a time.
type load struct {
	user, system float64 // % of a core
	bytes        int64   // written to its terminal
}

func (l load) String() string {
	return fmt.Sprintf("%.2f (%.2f+%.2f)", l.user+l.system, l.user, l.system)
}

// onTerminal runs a command in a simulated host with a terminal of its own
// and measures it once it has settled.
func (l *lab) onTerminal(boards string, lasts time.Duration, command ...string) (out load, err error) {
	// Not in the lab: a simulated host has a /dev/shm of its own.
	dir, err := os.MkdirTemp("", "ttmon-bench-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	pidFile := filepath.Join(dir, "pid")
	args := append([]string{
		"--boards", boards, "--procs", "name=llama,kind=metal,dram=8G,l1=30M,moves", "--",
		"sh", "-c", `echo $$ > "$0"; exec "$@"`, pidFile,
	}, command...)
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_CONFIG_HOME="+dir)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 200, Rows: 50})
	if err != nil {
		return out, err
	}
	var written atomic.Int64
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		io.WriteString(tty, "q")
		time.Sleep(200 * time.Millisecond)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		tty.Close()
		<-drained
	}()
	time.Sleep(5 * time.Second) // start and first samples are not what is measured
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		return out, fmt.Errorf("%v did not start: %w", command, err)
	}
	stat := "/proc/" + strings.TrimSpace(string(pid)) + "/stat"
	u0, s0, err := ticks(stat)
	if err != nil {
		return out, err
	}
	w0 := written.Load()
	time.Sleep(lasts)
	u1, s1, err := ticks(stat)
	if err != nil {
		return out, err
	}
	share := func(t int) float64 { return float64(t) / lasts.Seconds() } // 100 ticks a second: percent
	return load{share(u1 - u0), share(s1 - s0), written.Load() - w0}, nil
}

// ticks are fields 14 and 15 of a stat file: time in user and in system mode.
func ticks(path string) (user, system int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, err = strconv.Atoi(f[11])
	if err == nil {
		system, err = strconv.Atoi(f[12])
	}
	return user, system, err
}
