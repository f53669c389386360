package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/lib/libtest"
)

// benchRecord measures what recording costs, next to taking the same snapshots
// and throwing them away, and how fast a moment of a long recording is found.
func benchRecord(l *lab) error {
	const lasts = 12 * time.Second
	fmt.Printf("%-24s %22s %22s %14s\n", "32 chips, % of a core", "ttmon record", "reading alone", "to the file")
	dir, err := os.MkdirTemp("", "ttmon-bench-") // a simulated host has a /dev/shm of its own
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "x.ttrec")
	for _, c := range []struct{ interval, loop string }{{"1s", "1000"}, {"100ms", "100"}} {
		ttmon := filepath.Join(l.bin, "ttmon")
		before := time.Now()
		record, err := l.onTerminal("galaxy-wormhole", lasts, ttmon, "record", "--replace", "-o", file, "--interval", c.interval)
		if err != nil {
			return err
		}
		st, err := os.Stat(file)
		if err != nil {
			return err
		}
		perSecond := float64(st.Size()) / time.Since(before).Seconds()
		read, err := l.onTerminal("galaxy-wormhole", lasts, "sh", "-c", "exec "+ttmon+" smi --json --loop-ms "+c.loop+" > /dev/null")
		if err != nil {
			return err
		}
		fmt.Printf("%-24s %22s %22s %9.1f KB/s\n", "every "+c.interval, record, read, perSecond/1e3)
	}
	if err := l.recordAllocations(); err != nil {
		return err
	}
	if err := l.recordWatched(); err != nil {
		return err
	}
	docs, err := snapshotsOf(file)
	if err != nil {
		return err
	}
	if err := l.recordedHour(docs); err != nil {
		return err
	}
	return l.busyMinutes(docs)
}

// recordAllocations records a program that tells ten thousand events a second.
func (l *lab) recordAllocations() error {
	if err := libtest.Build(l.dir, "plain"); err != nil {
		return err
	}
	d, err := l.driver("TTMON_EVENTS=1", "TTMON_DIR=/dev/shm") // where every ttmon looks
	if err != nil {
		return err
	}
	defer d.Kill()
	defer func() {
		if ledger, err := d.Do("path"); err == nil {
			os.Remove(ledger) // a program that is killed leaves it
		}
	}()
	file := filepath.Join(l.dir, "allocations.ttrec")
	cmd := exec.Command(filepath.Join(l.bin, "ttmon"), "--direct", "record", "-q", "-o", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	var used time.Duration
	var bytes int64
	const warm, seconds = 2, 8
	for i := range (warm + seconds) * 10 {
		if i == warm*10 {
			if used, err = cpuTime(cmd.Process.Pid); err != nil {
				return err
			}
			bytes = size(file)
		}
		next := time.Now().Add(100 * time.Millisecond)
		if _, err := d.Do("storm 1 %d 1000", i); err != nil {
			return err
		}
		time.Sleep(time.Until(next))
	}
	now, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("10,000 allocations and frees a second: %.1f %% of a core, %.1f KB/s\n",
		(now-used).Seconds()/seconds*100, float64(size(file)-bytes)/seconds/1e3)
	return nil
}

func size(file string) int64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return st.Size()
}
