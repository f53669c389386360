package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// bin is the directory with the binaries that are measured, built once.
var bin string

func TestMain(m *testing.M) {
	programs.Main(hermetic.Options{}, func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// compiled is a C program of testdata.
func compiled(b *testing.B, name string) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), name)
	if out, err := exec.Command("cc", "-O2", "-o", path, filepath.Join("testdata", name+".c")).CombinedOutput(); err != nil {
		b.Fatalf("compiling %s: %v\n%s", name, err, out)
	}
	return path
}

// started is a process that ends with the benchmark.
func started(b *testing.B, cmd *exec.Cmd) *exec.Cmd {
	b.Helper()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// runs measures runs of a program with a standard input: the time, and the processor's.
func runs(b *testing.B, input string, command ...string) {
	var cpu time.Duration
	for b.Loop() {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin = strings.NewReader(input)
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v: %v", command, err)
		}
		cpu += used(cmd)
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// used is the processor time of a process that has ended.
func used(cmd *exec.Cmd) time.Duration {
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuTime is the processor time of a process so far, to the nanosecond: its clock has a
// number that is made from its pid.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const scheduled = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// resident is how much memory a process has.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages * os.Getpagesize())
}
