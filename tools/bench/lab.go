package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed c/floor.c
var floorSource []byte

// lab is a place to measure in: a scratch directory and the programs.
type lab struct {
	dir   string // on a tmpfs if there is one: a disk is not what is measured
	bin   string // of the built programs
	floor string
}

func newLab() (*lab, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(bin, "ttmon")); err != nil {
		return nil, fmt.Errorf("%w: run make build first", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "ttmon-bench-")
	if err != nil {
		if dir, err = os.MkdirTemp("", "ttmon-bench-"); err != nil {
			return nil, err
		}
	}
	l := &lab{dir: dir, bin: bin, floor: filepath.Join(dir, "floor")}
	if err := l.compile("floor", floorSource); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() { os.RemoveAll(l.dir) }

// compile builds a C program of one file into the lab.
func (l *lab) compile(name string, source []byte) error {
	file := filepath.Join(l.dir, name+".c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return err
	}
	out, err := exec.Command("cc", "-O2", "-o", filepath.Join(l.dir, name), file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", name, err, out)
	}
	return nil
}

// cost is what runs of a command took, the median of each.
type cost struct{ wall, cpu time.Duration }

// less is what a cost is above another.
func (c cost) less(d cost) cost { return cost{c.wall - d.wall, c.cpu - d.cpu} }

// measure runs commands in turn, many times, so that a noisy moment hits all
// of them alike.
func measure(rounds int, commands ...func() *exec.Cmd) ([]cost, error) {
	walls := make([][]time.Duration, len(commands))
	cpus := make([][]time.Duration, len(commands))
	for range rounds {
		for i, command := range commands {
			cmd := command()
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			begin := time.Now()
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, errOut.String())
			}
			walls[i] = append(walls[i], time.Since(begin))
			usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			cpus[i] = append(cpus[i], time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
		}
	}
	costs := make([]cost, len(commands))
	for i := range commands {
		costs[i] = cost{median(walls[i]), median(cpus[i])}
	}
	return costs, nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1e3) }

// systemCalls counts them with strace, if it is there.
func systemCalls(command ...string) (n int, files []string, err error) {
	log, err := os.CreateTemp("", "strace")
	if err != nil {
		return 0, nil, err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	args := append([]string{"-f", "-qq", "-y", "-o", log.Name()}, command...)
	// A traced command is slow enough to give up on a device; its exit code
	// says so, and does not matter here.
	if err := exec.Command("strace", args...).Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			return 0, nil, fmt.Errorf("counting the system calls of %v: %w", command, err)
		}
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "resumed>") || strings.Contains(line, "+++") {
			continue
		}
		n++
		if path, ok := openedFile(line); ok {
			files = append(files, path)
		}
	}
	return n, files, nil
}

// openedFile finds the file that a line of strace -y opens:
// openat(5</sys/class>, "name", …).
func openedFile(line string) (path string, ok bool) {
	_, rest, ok := strings.Cut(line, "openat(")
	if !ok || strings.Contains(line, "O_DIRECTORY") {
		return "", false
	}
	dir, rest, _ := strings.Cut(rest, ", \"")
	name, _, _ := strings.Cut(rest, "\"")
	if filepath.IsAbs(name) {
		return name, true
	}
	_, dir, _ = strings.Cut(dir, "<")
	return filepath.Join(strings.TrimSuffix(dir, ">"), name), true
}
