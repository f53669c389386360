package track

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// everything is a bit of all that the library can do: for a program with an
// allocator of its own, and inside two copies of a tt-metal, one of which is
// unloaded, and a third that was there before.
func everything(dir string) string {
	metal := filepath.Join(dir, "libtt_metal.so")
	return own + fmt.Sprintf("metal 0 %s\nmetal 1 %s.copy\nmopen 0 5\nmopen 1 6\nmtake 0 1000\nmtake 1 2000\nmstorm 2\nmclose 0\nmunload 0\nmtake 1 64\n"+
		"attach\nmtake 1 64\nmclose 1\nmunload 1\nerror\n", metal, metal)
}

const own = "list 5 0\nalloc 1 4096\nalloc 1 8192\npush kv\nalloc 1 40960\npop\nfree 1 4096\nquery 5 0\nstorm 3 3 3000\nstacks 3\nalloc 1 12288\n" +
	"fork\nlist 9 0\nalloc 1 4096\nclose 1\nreset\nlist 5 0\nclose 2\nerror\n"

// The library's own tests under the sanitizers and valgrind.
func TestLibraryIsClean(t *testing.T) {
	hermetic.Long(t)
	if built == "" {
		t.Skip("no C compiler")
	}
	for _, kind := range []string{"asan", "tsan", "valgrind"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			command := []string{filepath.Join(dir, "driver")}
			build := kind
			if kind == "valgrind" {
				valgrind, err := exec.LookPath("valgrind")
				if err != nil {
					t.Skip("no valgrind")
				}
				// Its leak checker would fault on every page of the ledger's mapping
				// that has no file behind it; asan looks for leaks.
				build, command = "static", append([]string{valgrind, "-q", "--error-exitcode=9", "--leak-check=no"}, command...)
			}
			if err := libtest.Build(dir, build); err != nil {
				t.Skipf("the compiler has no %s: %v", kind, err)
			}
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "TTMON_DIR="+dir)
			copyMetal(t, dir)
			cmd.Stdin = strings.NewReader(everything(dir))
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "WARNING: ThreadSanitizer") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestQueues: work counts as waited for only where tt-metal had it when the wait
// began, whatever threads and exceptions do.
func TestQueues(t *testing.T) {
	cc, err := libtest.Compiler()
	if err != nil {
		t.Skip(err)
	}
	root, err := libtest.Root()
	if err != nil {
		t.Fatal(err)
	}
	lib, program := filepath.Join(root, "lib"), filepath.Join(t.TempDir(), "queues")
	out, err := exec.Command(cc, "-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I"+lib+"/include", "-I"+lib+"/src", "-pthread",
		lib+"/test/queues.c", "-o", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyMetal makes a second file of the tt-metal that the driver loads.
func copyMetal(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "libtt_metal.so"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "libtt_metal.so.copy"), b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two copies of tt-metal in one process are followed each for itself, and what
// one of them did is known when it is unloaded.
func TestTwoCopies(t *testing.T) {
	d, dir := driver(t)
	copyMetal(t, built)
	metal := filepath.Join(built, "libtt_metal.so")
	do(t, d, "1", "metal 0 %s", metal)
	do(t, d, "1", "metal 1 %s.copy", metal)
	for i, chip := range []int{5, 6} {
		do(t, d, "ok", "mopen %d %d", i, chip)
		do(t, d, "4096", "mtake %d %d", i, 1000*(i+1))
	}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	check := func(want map[uint64]uint64) {
		t.Helper()
		got := map[uint64]uint64{}
		p := one(t, r)
		for _, a := range p.State.Allocators {
			for _, l := range a.Lists {
				if n, known := l.Occupied(); known && l.Exact() && len(a.Chips) == 1 {
					got[a.Chips[0]] += n
				} else {
					t.Errorf("chips %v: banks known: %v, exact: %v", a.Chips, known, l.Exact())
				}
			}
		}
		if !reflect.DeepEqual(got, want) || p.Ledger.Unknown+p.Ledger.Unmatched > 0 {
			t.Errorf("held by chip: %v, want %v; %d unknown, %d unmatched", got, want, p.Ledger.Unknown, p.Ledger.Unmatched)
		}
	}
	check(map[uint64]uint64{5: 1024, 6: 2048}) // a bank gives whole 64 bytes
	do(t, d, "ok", "mclose 0")
	do(t, d, "0", "munload 0")
	check(map[uint64]uint64{6: 2048})
	do(t, d, "69632", "mtake 1 64")
	do(t, d, "1", "metal 2 %s", metal) // loaded again
	do(t, d, "ok", "mopen 2 7")
	do(t, d, "4096", "mtake 2 512")
	check(map[uint64]uint64{6: 2048 + 512, 7: 512})
}

// A program may open and close a device as often as it likes: the last one is
// known as well as the first.
func TestDeviceOpenedOften(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "metal 0 %s", filepath.Join(built, "libtt_metal.so"))
	for range 300 {
		do(t, d, "ok", "mopen 0 5")
		do(t, d, "4096", "mtake 0 64")
		do(t, d, "ok", "mclose 0")
	}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	if chips := one(t, r).Ledger.Chips; len(chips) != 1 || chips[0].ID != 5 || chips[0].Open {
		t.Errorf("chips %+v, want chip 5, closed", chips)
	}
}

// The library works where programs have another C library, or another machine.
func TestOtherPlatforms(t *testing.T) {
	hermetic.Long(t)
	if built == "" {
		t.Skip("no C compiler")
	}
	for kind, needs := range map[string][]string{
		"arm64": {"aarch64-linux-gnu-gcc", "qemu-aarch64-static"},
		"musl":  {"musl-gcc"},
	} {
		t.Run(kind, func(t *testing.T) {
			for _, program := range needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("needs %s", program)
				}
			}
			if _, err := os.Stat("/usr/aarch64-linux-gnu/lib/libc.so.6"); err != nil && kind == "arm64" {
				t.Skip("needs a C library for arm64")
			}
			dir := t.TempDir()
			if err := libtest.Build(dir, kind); err != nil {
				t.Fatal(err)
			}
			command := []string{filepath.Join(dir, "driver")}
			if kind == "arm64" {
				command = append([]string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"}, command...)
			}
			copyMetal(t, dir)
			ledgers := t.TempDir()
			run := func(script string) string {
				t.Helper()
				cmd := exec.Command(command[0], command[1:]...)
				cmd.Env = append(os.Environ(), "TTMON_DIR="+ledgers)
				cmd.Stdin = strings.NewReader(script)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return string(out)
			}
			run(everything(dir))
			metal := filepath.Join(dir, "libtt_metal.so")
			out := run(fmt.Sprintf("metal 0 %s\nmopen 0 5\nmtake 0 1000\nmtake 0 64\nmgive 0 4096\nquery 5 0\nlist 6 0\nalloc 1 4096 640\nquery 6 0\n", metal))
			if want := "1\nok\n4096\n69632\nok\n0 512 1 1536 0 536870912\n1\n0\n0 5120 1 5120 0 16777216\n"; out != want {
				t.Errorf("it says %q, want %q", out, want)
			}
		})
	}
}

// A file system that is really full, from the start or later, is no more than
// a ledger that is not there, or says that it is not complete.
func TestFullFileSystem(t *testing.T) {
	if built == "" {
		t.Skip("no C compiler")
	}
	mount := func(t *testing.T, bytes int) string {
		t.Helper()
		dir := t.TempDir()
		if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			t.Skipf("needs to mount a file system: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		return dir
	}
	t.Run("from the start", func(t *testing.T) {
		dir := mount(t, 64<<10)
		d, _ := driver(t, "TTMON_DIR="+dir)
		do(t, d, "0", "list 5 0")
		do(t, d, "-1", "alloc 1 4096")
		if left := ledgersIn(t, dir); len(left) > 0 {
			t.Errorf("what could not be made is left: %v", left)
		}
	})
	for name, fill := range map[string]bool{"by the ledger itself": false, "by another writer": true} {
		t.Run(name, func(t *testing.T) {
			dir := mount(t, 4<<20)
			d, _ := driver(t, "TTMON_DIR="+dir)
			do(t, d, "1", "list 5 0")
			do(t, d, "0", "alloc 1 4096")
			if fill {
				other, err := os.Create(filepath.Join(dir, "other"))
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				for err == nil {
					_, err = other.Write(make([]byte, 64<<10))
				}
			}
			if _, err := d.Do("bench 2 150000"); err != nil {
				t.Fatalf("it did not survive: %v", err)
			}
			r := NewReader(Options{Dir: dir})
			defer r.Close()
			p := one(t, r)
			if p.Ledger.Lost == 0 || p.Ledger.Flags&ledgerfile.Full == 0 || p.State.Exact() {
				t.Errorf("lost %d, flags %b, exact %v", p.Ledger.Lost, p.Ledger.Flags, p.State.Exact())
			}
			if _, ok := p.State.Allocators[0].Lists[0].At(4096); !ok {
				t.Error("what was there before is gone")
			}
		})
	}
}

// No room, no permission, no directory: never a crash, and no figure that is
// not said to be wrong.
func TestNoRoom(t *testing.T) {
	d, _ := driver(t, "TTMON_DIR=/no/such/directory")
	do(t, d, "0", "list 5 0")
	do(t, d, "-1", "alloc 1 4096")
	if got, err := d.Do("error"); err != nil || !strings.Contains(got, "No such file") {
		t.Errorf("it says %q, %v", got, err)
	}

	// A limit on the size of files would raise a signal.
	d, dir := driver(t)
	do(t, d, "ok", "fsize 1000000")
	do(t, d, "0", "list 5 0")
	if left := ledgersIn(t, dir); len(left) > 0 {
		t.Errorf("what could not be made is left: %v", left)
	}

	// It is reached later: what finds no room is counted.
	d, dir = driver(t)
	do(t, d, "1", "list 5 0")
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, "ok", "fsize %d", st.Size())
	if _, err := d.Do("bench 2 5000"); err != nil {
		t.Fatal(err)
	}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	l := one(t, r).Ledger
	if l.Lost == 0 || l.Flags&ledgerfile.Full == 0 || one(t, r).State.Exact() {
		t.Errorf("lost %d, flags %b", l.Lost, l.Flags)
	}
}

// A process that gives up its rights keeps its ledger.
func TestDroppedPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give up rights")
	}
	d, dir := driver(t)
	do(t, d, "1", "list 5 0")
	do(t, d, "0", "setuid 65534")
	do(t, d, "0", "alloc 1 4096")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	if p := one(t, r); p.PID != d.Cmd.Process.Pid || p.State.Blocks() != 1 {
		t.Errorf("pid %d, %d blocks", p.PID, p.State.Blocks())
	}
}

// The examples compile without a warning and say what they should.
func TestExamples(t *testing.T) {
	if built == "" {
		t.Skip("no C compiler")
	}
	root, err := libtest.Root()
	if err != nil {
		t.Fatal(err)
	}
	for source, c := range map[string]struct{ compiler, standard, want string }{
		"allocator.c": {"cc", "-std=c11", "536870912 bytes in 1 blocks, 545259520 at most\n"},
		"monitor.cpp": {"c++", "-std=c++17", "chip 4476187513037: 536870912 bytes now, 545259520 at most\nthis process: 536870912 bytes in 1 blocks\n"},
	} {
		t.Run(source, func(t *testing.T) {
			if _, err := exec.LookPath(c.compiler); err != nil {
				t.Skipf("no %s", c.compiler)
			}
			program := filepath.Join(t.TempDir(), "example")
			out, err := exec.Command(c.compiler, c.standard, "-Wall", "-Wextra", "-Werror", "-I"+filepath.Join(root, "lib/include"),
				filepath.Join(root, "lib/examples", source), "-o", program, "-L"+built, "-l:libttmon.so", "-Wl,-rpath,"+built).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
				return
			}
			if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%v, it says %q", err, out)
			}
		})
	}
}

// What a buffer asks for is known of releases that tell only its pages, also on
// threads that tt-metal does not account for.
func TestAskedByPages(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "metal 0 %s", filepath.Join(built, "libtt_metal.pages.so"))
	do(t, d, "ok", "mopen 0 5")
	do(t, d, "4096", "mtake 0 1000")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	held := r.Read(nil).Claims().Held
	if len(held) != 1 || held[0].Chip.ID != 5 || !held[0].Bytes[model.DRAM].Exactly(1000) || len(held[0].Doubts) > 0 {
		t.Errorf("held: %+v", held)
	}
	if len(held) == 1 && held[0].Bytes[model.CB].Status() != model.Unsupported {
		t.Errorf("circular buffers, which a ledger does not have: %v", held[0].Bytes[model.CB].Status())
	}
}

// What a forked child takes from its copy of an allocator is in a ledger of its
// own, on the chip of its parent's; what the parent holds is not.
func TestForkedAllocator(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "metal 0 %s", filepath.Join(built, "libtt_metal.so"))
	do(t, d, "ok", "mopen 0 5")
	do(t, d, "4096", "mtake 0 1000")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	do(t, d, "child 69632", "fork\nmtake 0 300")
	do(t, d, "ok", "mgive 0 4096") // its copy of its parent's block
	check := func(inherited bool, want uint64) {
		t.Helper()
		for _, p := range r.Read(nil).Processes {
			if (p.PID == d.Cmd.Process.Pid) == inherited {
				continue
			}
			held := p.State.Held()
			if len(held) != 1 || held[0].Chip.ID != 5 || !held[0].Bytes[model.DRAM].Exactly(want) || len(held[0].Doubts) > 0 || held[0].Partial {
				t.Errorf("process %d holds %+v, want %d on chip 5", p.PID, held, want)
			}
			if l := p.State.Allocators[0].Lists[0]; l.Inherited != inherited || l.Banks != 8 || p.Ledger.Unknown+p.Ledger.Unmatched > 0 {
				t.Errorf("process %d: %+v, %d unknown, %d unmatched", p.PID, l, p.Ledger.Unknown, p.Ledger.Unmatched)
			}
			return
		}
		t.Errorf("no such process (inherited %v)", inherited)
	}
	check(false, 1000)
	check(true, 300)
}
