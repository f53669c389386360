package proc

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// crowd starts n processes with some descriptors each, in the real /proc.
func crowd(b *testing.B, n int) (pids []int) {
	b.Helper()
	files := make([]*os.File, 13)
	for i := range files {
		f, err := os.Open("/etc/passwd")
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	for range n {
		cmd := exec.Command("sleep", "3600")
		cmd.ExtraFiles = files
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	return pids
}

// floor makes the system calls that cannot be avoided, and nothing else:
// with links all descriptors of all processes, without one stat for each.
type floor struct{ pids, fds, link []byte }

func (f *floor) sweep(b *testing.B, links bool) (processes, descriptors int) {
	proc, err := rootFS.OpenDir("/proc")
	if err != nil {
		b.Fatal(err)
	}
	defer proc.Close()
	_ = proc.Each(f.pids, func(name []byte) bool {
		if name[0] < '0' || name[0] > '9' {
			return true
		}
		processes++
		var path [32]byte
		fd := append(append(path[:0], name...), "/fd"...)
		var st unix.Statx_t
		if proc.Stat(string(fd), &st) != nil || !links {
			return true
		}
		dir, err := proc.OpenDir(string(fd))
		if err != nil {
			return true
		}
		_ = dir.Each(f.fds, func(name []byte) bool {
			_, _ = dir.Readlink(string(name), f.link)
			descriptors++
			return true
		})
		dir.Close()
		return true
	})
	return processes, descriptors
}

// ratio times ours against the floor, in turns, so that both meet the same
// moods of the machine.
func ratio(b *testing.B, ours, floor func()) {
	var a, f time.Duration
	b.ReportAllocs()
	for b.Loop() {
		begun := time.Now()
		floor()
		f += time.Since(begun)
		begun = time.Now()
		ours()
		a += time.Since(begun)
	}
	b.ReportMetric(a.Seconds()/f.Seconds(), "x-floor")
	b.ReportMetric(float64(a.Microseconds())/float64(b.N), "us/sweep")
}

func BenchmarkHolders(b *testing.B) {
	crowd(b, 300)
	f := &floor{make([]byte, 32<<10), make([]byte, 32<<10), make([]byte, 4096)}
	processes, descriptors := f.sweep(b, true)
	b.Logf("%d processes, %d descriptors", processes, descriptors)
	run := func(r *Reader) {
		if _, err := holders(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		ratio(b, func() { run(New(rootFS)) }, func() { f.sweep(b, true) })
	})
	b.Run("full", func(b *testing.B) {
		r := New(rootFS)
		ratio(b, func() {
			for _, t := range r.descriptors.byPID {
				t.due = time.Time{}
			}
			run(r)
		}, func() { f.sweep(b, true) })
	})
	b.Run("again", func(b *testing.B) {
		r := New(rootFS)
		run(r)
		ratio(b, func() { run(r) }, func() { f.sweep(b, false) })
	})
}

// Describe against reading the two files that change all the time.
func BenchmarkDescribe(b *testing.B) {
	pids := crowd(b, 32)
	buf := make([]byte, 4096)
	bare := func() {
		for _, pid := range pids {
			for _, name := range []string{"stat", "statm"} {
				dir, err := rootFS.OpenDir("/proc/" + strconv.Itoa(pid))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = dir.Read(name, buf)
				dir.Close()
			}
		}
	}
	b.Run("again", func(b *testing.B) {
		r := New(rootFS)
		ratio(b, func() { r.Describe(pids) }, bare)
	})
	b.Run("first", func(b *testing.B) {
		ratio(b, func() { New(rootFS).Describe(pids) }, bare)
	})
}

// Resolve of 32 devices with a process each, as on a busy Galaxy.
func BenchmarkResolve(b *testing.B) {
	tr := &tree{b, b.TempDir()}
	tr.mkdir("dev/tenstorrent")
	if err := os.Symlink("/proc", tr.dir+"/proc"); err != nil {
		b.Fatal(err)
	}
	var devices []Openers
	for i := range 32 {
		tr.write("dev/tenstorrent/"+strconv.Itoa(i), "")
		f, err := os.Open(tr.node(i))
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command("sleep", "3600")
		cmd.ExtraFiles = []*os.File{f}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		f.Close()
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		devices = append(devices, Openers{Device: i, PIDs: model.Value([]int{cmd.Process.Pid})})
	}
	r := New(hostfs.At(tr.dir))
	b.ReportAllocs()
	for b.Loop() {
		u, err := r.Resolve(b.Context(), devices, "2.10.0")
		if err != nil || len(u.Processes) != 32 || u.Coverage.Scanned {
			b.Fatalf("%d processes, %+v, %v", len(u.Processes), u.Coverage, err)
		}
	}
}
