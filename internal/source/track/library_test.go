package track

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// everything is a bit of all that the library can do.
const everything = "list 5 0\nalloc 1 4096\nalloc 1 8192\npush kv\nalloc 1 40960\npop\nfree 1 4096\nquery 5 0\nstorm 3 3 3000\nstacks 3\nalloc 1 12288\n" +
	"fork\nlist 9 0\nalloc 1 4096\nclose 1\nreset\nlist 5 0\nclose 2\nerror\n"

// The library's own tests under the sanitizers and valgrind.
func TestLibraryIsClean(t *testing.T) {
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
			cmd.Stdin = strings.NewReader(everything)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "WARNING: ThreadSanitizer") {
				t.Errorf("%v\n%s", err, out)
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
	if list, _ := names(dir); len(list) != 0 {
		t.Errorf("what could not be made is left: %v", list)
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
		"monitor.cpp": {"c++", "-std=c++17", "chip 4476187513037: 536870912 bytes now, 545259520 at most\nhost: known\n"},
	} {
		if _, err := exec.LookPath(c.compiler); err != nil {
			t.Logf("%s: no %s", source, c.compiler)
			continue
		}
		program := filepath.Join(t.TempDir(), "example")
		out, err := exec.Command(c.compiler, c.standard, "-Wall", "-Wextra", "-Werror", "-I"+filepath.Join(root, "lib/include"),
			filepath.Join(root, "lib/examples", source), "-o", program, "-L"+built, "-l:libttmon.so", "-Wl,-rpath,"+built).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", source, err, out)
			continue
		}
		if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("%s: %v, it says %q", source, err, out)
		}
	}
}
