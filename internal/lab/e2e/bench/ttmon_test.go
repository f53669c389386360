package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// BenchmarkStart is what it takes to start ttmon, next to the smallest program there
// is. GODEBUG=inittrace=1 says what of it initialises longest.
func BenchmarkStart(b *testing.B) {
	b.Run("true", func(b *testing.B) { runs(b, "", "true") })
	b.Run("ttmon version", func(b *testing.B) { runs(b, "", filepath.Join(bin, "ttmon"), "version") })
}

// BenchmarkSnapshot is a snapshot next to a C program that only opens, reads and closes
// the files that the snapshot reads. Both start first: the start is of a list of no
// files, and of ttmon version. Aim: within 1.5 floors.
func BenchmarkSnapshot(b *testing.B) {
	floor, ttmon := compiled(b, "floor"), filepath.Join(bin, "ttmon")
	b.Run("start/floor", func(b *testing.B) { runs(b, "", floor) })
	b.Run("start/ttmon", func(b *testing.B) { runs(b, "", ttmon, "version") })
	for _, boards := range []string{"1xp150a", "8xp150a", "galaxy-blackhole"} {
		root := filepath.Join(b.TempDir(), boards)
		if out, err := exec.Command(filepath.Join(bin, "ttmon-sim"), "--root", root, "--boards", boards).CombinedOutput(); err != nil {
			b.Fatalf("making a host of %s: %v\n%s", boards, err, out)
		}
		snapshot := []string{ttmon, "smi", "--json", "--direct", "--root", root}
		files := strings.Join(opened(b, snapshot...), "\n")
		b.Run(boards+"/floor", func(b *testing.B) { runs(b, files, floor) })
		b.Run(boards+"/ttmon", func(b *testing.B) { runs(b, "", snapshot...) })
	}
}

// opened are the files that a command opens, by strace.
func opened(b *testing.B, command ...string) (files []string) {
	b.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		b.Skip("strace is not installed")
	}
	log := filepath.Join(b.TempDir(), "log")
	// A traced command is slow enough to give up on a device; its exit code says so, and
	// does not matter here.
	err := exec.Command("strace", append([]string{"-f", "-qq", "-y", "-e", "openat", "-o", log}, command...)...).Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		b.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// openat(5</sys/class>, "name", …
		_, rest, ok := strings.Cut(line, "openat(")
		if !ok || strings.Contains(line, "O_DIRECTORY") {
			continue
		}
		dir, rest, _ := strings.Cut(rest, ", \"")
		name, _, _ := strings.Cut(rest, "\"")
		if !filepath.IsAbs(name) {
			_, dir, _ = strings.Cut(dir, "<")
			name = filepath.Join(strings.TrimSuffix(dir, ">"), name)
		}
		files = append(files, name)
	}
	return files
}

// BenchmarkTop is a second of ttmon top on a terminal of 200 by 50, next to reading the
// same host without drawing it and, where it is installed, next to nvtop: so much of a
// core, and so much is written. -benchtime says for how many seconds (15x).
func BenchmarkTop(b *testing.B) {
	ttmon := filepath.Join(bin, "ttmon")
	for _, boards := range []string{"p150a", "8xn150", "galaxy-wormhole"} {
		b.Run(boards+"/top", func(b *testing.B) { onTerminal(b, boards, ttmon, "top") })
		b.Run(boards+"/reading alone", func(b *testing.B) {
			onTerminal(b, boards, "sh", "-c", "exec "+ttmon+" smi --json -l 1 >/dev/null")
		})
		if nvtop, err := exec.LookPath("nvtop"); err == nil {
			b.Run(boards+"/nvtop", func(b *testing.B) { onTerminal(b, boards, nvtop) })
		}
	}
}

// onTerminal measures a command in a simulated host, with a terminal of its own, once it
// has settled.
func onTerminal(b *testing.B, boards string, command ...string) {
	dir := b.TempDir()
	pidFile := filepath.Join(dir, "pid")
	cmd := exec.Command(filepath.Join(bin, "ttmon-sim"), append([]string{
		"--boards", boards, "--procs", "name=llama,kind=metal,dram=8G,l1=30M,moves", "--",
		"sh", "-c", `echo $$ >"$0".new; mv "$0".new "$0"; exec "$@"`, pidFile,
	}, command...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_CONFIG_HOME="+dir)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 200, Rows: 50})
	if err != nil {
		b.Fatal(err)
	}
	var written atomic.Int64
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for buf := make([]byte, 64<<10); ; {
			n, err := tty.Read(buf)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		tty.Close()
		<-drained
	}()
	time.Sleep(5 * time.Second) // the start and the first samples are not what is measured
	text, err := os.ReadFile(pidFile)
	if err != nil {
		b.Fatalf("%v did not start: %v", command, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		b.Fatal(err)
	}
	cpu, bytes := cpuTime(b, pid), written.Load()
	b.ResetTimer()
	for range b.N {
		time.Sleep(time.Second) // one sample
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric((cpuTime(b, pid)-cpu).Seconds()/seconds*100, "%core")
	b.ReportMetric(float64(written.Load()-bytes)/seconds/1e3, "KB/s")
}
