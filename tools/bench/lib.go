package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/libtest"
)

// benchLib measures what libttmon costs the program that has it, and what
// reading its ledgers costs us.
func benchLib(l *lab) error {
	if err := libtest.Build(l.dir, "plain"); err != nil {
		return err
	}
	for _, part := range []func() error{l.events, l.hooks, l.lines, l.startUp, l.ttnnLoop, l.ledgers} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) driver(env ...string) (*libtest.Driver, error) {
	cmd := exec.Command(filepath.Join(l.dir, "driver"))
	cmd.Env = append(append(os.Environ(), "TTMON_DIR="+l.dir), env...)
	return libtest.Start(cmd)
}

// events is CPU time per event, with few and many blocks live.
func (l *lab) events() error {
	for _, live := range []int{100, 100_000} {
		var best float64
		for range 5 {
			d, err := l.driver()
			if err != nil {
				return err
			}
			answer, err := d.Do("bench 4000000 %d", live)
			d.Kill()
			if err != nil {
				return err
			}
			if ns, _ := strconv.ParseFloat(answer, 64); best == 0 || ns < best {
				best = ns
			}
		}
		fmt.Printf("an event, %d blocks live: %.1f ns of CPU\n", live, best)
	}
	return nil
}

// hooks compares a loop that takes a buffer and gives it back through a
// tt-metal of our own, with the library and without. A round is two events.
func (l *lab) hooks() error {
	program := filepath.Join(l.dir, "buffers")
	if out, err := exec.Command("cc", "-O2", "-w", "-o", program, "tools/bench/c/buffers.c", "-ldl").CombinedOutput(); err != nil {
		return fmt.Errorf("compiling buffers.c: %w\n%s", err, out)
	}
	var best [2]float64
	for range 5 {
		for i, preload := range []string{"", filepath.Join(l.dir, "libttmon.so")} {
			cmd := exec.Command(program, filepath.Join(l.dir, "libtt_metal.so"), "1000000")
			cmd.Env = append(os.Environ(), "TTMON_DIR="+l.dir, "LD_PRELOAD="+preload)
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("buffers: %w", err)
			}
			if ns, _ := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); best[i] == 0 || ns < best[i] {
				best[i] = ns
			}
		}
	}
	fmt.Printf("a buffer taken and given back in C: %.1f ns of CPU without, %.1f with: %.1f ns an event (aim: 30)\n", best[0], best[1], (best[1]-best[0])/2)
	return nil
}

// lines is what Python lines add to an event.
func (l *lab) lines() error {
	python, err := ttnn.Python(ttnn.Newest)
	if err != nil {
		fmt.Println("Python lines:", err)
		return nil
	}
	cmd := exec.Command(python, "lib/python/tests/cost.py")
	cmd.Env = append(os.Environ(), "TTMON_LIBRARY="+filepath.Join(l.dir, "libttmon.so"), "TTMON_DIR="+l.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cost.py: %w\n%s", err, out)
	}
	fmt.Printf("%s", out)
	return nil
}

// startUp compares programs that never load tt-metal, with and without the library.
func (l *lab) startUp() error {
	for _, command := range [][]string{{"true"}, {"python3", "-c", "pass"}} {
		var with, without []time.Duration
		for range 40 {
			for _, preloaded := range []bool{false, true} {
				cmd := exec.Command(command[0], command[1:]...)
				cmd.Env = os.Environ()
				if preloaded {
					cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(l.dir, "libttmon.so"))
				}
				if err := cmd.Run(); err != nil {
					return err
				}
				used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				if preloaded {
					with = append(with, used)
				} else {
					without = append(without, used)
				}
			}
		}
		a, b := median(with), median(without)
		fmt.Printf("%s: %v of CPU with the library, %v without (%+v)\n", strings.Join(command, " "), a, b, a-b)
	}
	return nil
}

// ttnnLoop is a loop of ttnn.empty and deallocate, with and without.
func (l *lab) ttnnLoop() error {
	python, err := ttnn.Python(ttnn.Newest)
	if err != nil {
		fmt.Println("the real ttnn:", err)
		return nil
	}
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		return err
	}
	var bare float64
	for _, mode := range []string{"without", "with", "with lines"} {
		var best float64
		for range 3 {
			cmd := exec.Command(python, "testdata/ttnn/loop.py")
			cmd.Env = append(os.Environ(), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+descriptor, "TT_METAL_LOGS_PATH="+l.dir,
				"TT_METAL_CACHE="+filepath.Join(l.dir, "cache"), "HOME="+l.dir, "TT_LOGGER_LEVEL=error", "TTMON_DIR="+l.dir)
			if mode != "without" {
				cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(l.dir, "libttmon.so"))
			}
			if mode == "with lines" {
				cmd.Env = append(cmd.Env, "TTMON_STACKS=python")
			}
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("loop.py: %w", err)
			}
			if us, _ := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); best == 0 || us < best {
				best = us
			}
		}
		if mode == "without" {
			bare = best
		}
		fmt.Printf("ttnn.empty and deallocate, %s: %.2f µs of CPU a round (ratio %.2f)\n", mode, best, best/bare)
	}
	return nil
}

// ledgers is the cost of reading 64 processes of 10,000 blocks each.
func (l *lab) ledgers() error {
	const processes, live = 64, 10_000
	dir := filepath.Join(l.dir, "ledgers")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for range processes {
		d, err := l.driver("TTMON_DIR=" + dir)
		if err != nil {
			return err
		}
		defer d.Kill()
		if _, err := d.Do("bench 2 %d", live); err != nil {
			return err
		}
	}
	r := track.NewReader(track.Options{Dir: dir})
	defer r.Close()
	first := ourCPU()
	if n := len(r.Read(nil).Processes); n != processes {
		return fmt.Errorf("%d processes found, %d are there", n, processes)
	}
	first = ourCPU() - first
	const sweeps = 20
	again := ourCPU()
	for range sweeps {
		r.Read(nil)
	}
	again = (ourCPU() - again) / sweeps
	var used int64
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Stat(f, &st); err != nil {
			return err
		}
		used += st.Blocks * 512
	}
	fmt.Printf("%d processes of %d blocks: %v of CPU to read all, %v when nothing has changed; %d bytes a block in /dev/shm\n",
		processes, live, first, again, used/(processes*live))
	return nil
}

func ourCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
