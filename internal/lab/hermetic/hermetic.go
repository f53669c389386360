// Package hermetic runs the tests of a package on a host of their own: other
// programs of the machine do not affect them, and they leave nothing behind. It
// is outside the data flow; only tests import it.
//
// A package whose tests start processes, listen on sockets, or read /proc,
// /dev/shm, /run or /tmp has
//
//	func TestMain(m *testing.M) { hermetic.Main(m) }
//
// or, where TestMain has more to do, a call of Enter in it. Enter comes
// after what turns a process that a test started into something else than tests
// (sim.Reexec and its like):
//
//	go test ─► the test binary, outside: makes the namespaces, waits, watches the clock
//	             └─► pid 1 inside: mounts, reaps orphans, ends with the tests
//	                   └─► the test binary, inside: TestMain continues, m.Run
//
// Inside there are a pid, mount, ipc, uts and cgroup namespace, a /proc that
// shows the tests' own processes only, and an empty /dev/shm, /tmp and /run.
// The network is the machine's. When the tests are over, however they end,
// all processes that they started are killed with pid 1. When they take longer
// than their limit, they end with the names of those that still ran.
//
// The tests of a package share all that. One that scans all processes, as
// ttmond does, needs a host without the others: Alone.
//
// Root needs CAP_SYS_ADMIN for that, an ordinary user needs user namespaces;
// tests see the same user inside as outside. Where neither is available the
// tests run where they are, with a warning, and those that depend on it (they
// call Need) are skipped.
package hermetic

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Options configure how tests are run. The zero value is right for most.
type Options struct {
	// Limit is for all tests of the package together; 0 is DefaultLimit. It
	// replaces the ten minutes of go test, and any longer time; go test -timeout 0
	// disables it, for a debugger.
	Limit time.Duration
	// Parallel is how many tests that call t.Parallel run at a time, for a
	// package whose tests mostly wait; 0 leaves that to go test, which takes
	// one for each core.
	Parallel int
}

// DefaultLimit is more than any package needs even where forty other programs
// share two cores: it ends tests that hang, and measures nothing.
const DefaultLimit = 25 * time.Minute

// mark is a file that exists inside only. It is in a file system that is
// mounted for it, so that nothing else can pass for it.
const mark = "/run/ttmon-hermetic"

// missing is why the tests run outside; nil if they do not.
var missing error

// Main runs the tests on a host of their own and ends the program. It is for
// a TestMain that has nothing else to do.
func Main(m *testing.M) {
	Enter(Options{})
	os.Exit(m.Run())
}

// Enter returns on a host of the tests' own. Outside it runs the program again
// inside, and exits with its exit code.
func Enter(o Options) {
	if len(os.Args) > 0 {
		switch os.Args[0] {
		case initName:
			exit(runInit(os.Args[1:], cover))
		case aloneName:
			exit(runInit(os.Args[1:], coverShm))
		}
	}
	if o.Parallel > runtime.GOMAXPROCS(0) && !flagGiven("test.parallel") {
		_ = flag.Set("test.parallel", strconv.Itoa(o.Parallel))
	}
	if Inside() {
		return
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	code, err := runInside(o.Limit)
	if err == nil {
		exit(code)
	}
	missing = err
	fmt.Fprintf(os.Stderr, "hermetic: the tests run among the processes and files of this machine: %v\n", err)
}

// flagGiven reports whether a flag is on the command line.
func flagGiven(name string) (is bool) {
	if !flag.Parsed() {
		flag.Parse()
	}
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

// exit exits at once, also with the race detector, which waits a second for
// reports: those come from the tests.
func exit(code int) { syscall.Exit(code) }

// Inside reports whether this process is on such a host. Check it before
// clearing /dev/shm: outside it is shared by all users.
func Inside() bool {
	_, err := os.Lstat(mark)
	return err == nil
}

// Long skips a test under `make test`, which is go test -short: `make test-all`
// runs it. CONTRIBUTING has the rule which tests are long.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long one: make test-all")
	}
}

// Need skips a test that cannot run outside.
func Need(t testing.TB) {
	t.Helper()
	if Inside() {
		return
	}
	if missing == nil {
		t.Fatal("this package's TestMain does not call hermetic.Enter")
	}
	t.Skipf("needs a host of its own: %v", missing)
}
