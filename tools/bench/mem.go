package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/shm"
)

const (
	memChips            = 32
	memTries, memSweeps = 3, 20
	memPause            = 100 * time.Millisecond
)

// benchMem reads the statistics of 32 chips ten times a second, next to a loop
// that only reads the bytes: with one live process on each chip, as on real
// boards, and with as many as a region has room for.
func benchMem(l *lab) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "32 regions\tprocesses on each\tcpu µs a sweep\tof a core at 10 Hz\tto the floor\t")
	for _, processes := range []int{1, 64} {
		if err := l.sweeps(w, processes); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("All in one process, CPU time by getrusage, wake-ups included.")
	return nil
}

// sweeps measures with that many processes, all of them on all chips.
func (l *lab) sweeps(w io.Writer, processes int) error {
	root := filepath.Join(l.dir, fmt.Sprint("memory", processes))
	dir := filepath.Join(root, "dev/shm")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		return err
	}
	writers, err := l.startWriters(dir, processes)
	defer func() {
		for _, w := range writers {
			w.Close()
		}
	}()
	if err != nil {
		return err
	}
	floor, err := newByteReader(dir)
	if err != nil {
		return err
	}
	reader := shm.NewReader(shm.Options{Root: hostfs.At(root)})
	defer reader.Close()
	sweep := reader.Read(nil)
	if n := len(sweep.Regions); n != memChips || len(sweep.Regions[n-1].Uses) != processes {
		return fmt.Errorf("%d regions, the last with %d processes; want %d and %d", n, len(sweep.Regions[n-1].Uses), memChips, processes)
	}
	base := cpuOf(floor.read)
	row := func(what string, d time.Duration) {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.3f %%\t%.2f\t\n", what, processes, float64(d.Nanoseconds())/1e3, 100*d.Seconds()/memPause.Seconds(), float64(d)/float64(base))
	}
	row("floor: read the bytes", base)
	row("ttmon, no allocations", cpuOf(func() { reader.Read(nil) }))
	stop := keepBusy(writers[0])
	changed, seen := 0, 0
	last := reader.Read(nil).Regions
	row("ttmon, every region changes", cpuOf(func() {
		now := reader.Read(nil).Regions
		for i := range now {
			if seen++; now[i] != last[i] {
				changed++
			}
		}
		last = now
	}))
	stop()
	if share := 100 * changed / seen; share < 90 {
		fmt.Fprintf(w, "but only %d %% did: the machine is too busy\t\t\t\t\t\n", share)
	}
	return nil
}

// startWriters starts the processes, each on all chips. Closing one's input
// ends it. Their answers go to a file: reading them would cost us. It is a new
// one each time: an earlier writer may still answer.
func (l *lab) startWriters(dir string, n int) (inputs []io.WriteCloser, err error) {
	var script strings.Builder
	for id := range memChips {
		fmt.Fprintf(&script, "open %d %d\nalloc %d dram %dM\n", 1000+id, id, 1000+id, 1+id)
	}
	for i := range n {
		log, err := os.Create(filepath.Join(l.dir, fmt.Sprintf("writer%d-%d", n, i)))
		if err != nil {
			return inputs, err
		}
		defer log.Close()
		cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "metal", "--shm", dir)
		cmd.Stdout = log
		in, err := cmd.StdinPipe()
		if err != nil {
			return inputs, err
		}
		if err := cmd.Start(); err != nil {
			return inputs, err
		}
		go cmd.Wait()
		inputs = append(inputs, in)
		if _, err := io.WriteString(in, script.String()); err != nil {
			return inputs, err
		}
		if err := awaitLines(log.Name(), 2*memChips); err != nil {
			return inputs, err
		}
		if err := os.Truncate(log.Name(), 0); err != nil {
			return inputs, err
		}
	}
	return inputs, nil
}

// awaitLines waits for the answers to all commands.
func awaitLines(file string, n int) error {
	for range 60_000 { // ms: 64 of them start on a busy machine
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), `"error"`) {
			return fmt.Errorf("a writer said %q: %w", text, err)
		}
		if strings.Count(string(text), "\n") == n {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("a writer does not answer")
}

// keepBusy lets a writer change every region between two sweeps, from a
// process whose CPU time is not counted here.
func keepBusy(in io.Writer) (stop func()) {
	var script strings.Builder
	for id := range memChips {
		fmt.Fprintf(&script, "alloc %d l1 1024\nfree %d l1 1024\n", 1000+id, 1000+id)
	}
	feeder := exec.Command("sh", "-c", `while :; do printf '%s' "$1"; sleep 0.05; done`, "sh", script.String())
	feeder.Stdout = in.(*os.File)
	if err := feeder.Start(); err != nil {
		return func() {}
	}
	return func() {
		feeder.Process.Kill()
		feeder.Wait()
	}
}

// byteReader is the floor: descriptors kept open, and one buffer.
type byteReader struct {
	fds []int
	buf []byte
}

func newByteReader(dir string) (*byteReader, error) {
	r := &byteReader{buf: make([]byte, shm.Size)}
	names, err := filepath.Glob(filepath.Join(dir, "tt_device_*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		r.fds = append(r.fds, fd)
	}
	return r, nil
}

func (r *byteReader) read() {
	for _, fd := range r.fds {
		if n, err := unix.Pread(fd, r.buf, 0); n != shm.Size || err != nil {
			panic(fmt.Sprint("BUG: a short read: ", n, err))
		}
	}
}

// cpuOf is the CPU time that one round costs, at ten rounds a second: the
// least of a few tries, since whatever else the machine does only adds to it.
func cpuOf(f func()) time.Duration {
	f() // what is only done the first time
	least := time.Duration(math.MaxInt64)
	for range memTries {
		before := ourCPU()
		for range memSweeps {
			f()
			time.Sleep(memPause)
		}
		least = min(least, (ourCPU()-before)/memSweeps)
	}
	return least
}
