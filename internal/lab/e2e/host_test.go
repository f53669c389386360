package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// bin is the directory with the binaries under test, built once.
var bin string

func TestMain(m *testing.M) {
	programs.Main(hermetic.Options{Parallel: 6, Limit: 45 * time.Minute}, func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// impatient is for tests of what does not answer at all, and those below them.
func impatient(t *testing.T) { impatientTests.Store(t.Name(), true) }

var impatientTests sync.Map

// environment is that of the programs of a test.
func environment(t *testing.T) []string {
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if _, ok := impatientTests.Load(name); ok {
			return append(os.Environ(), programs.TimeoutVar+"=2s")
		}
	}
	return os.Environ()
}

// start makes a simulated host that ends with the test.
func start(t *testing.T, o sim.Options) *sim.Host {
	t.Helper()
	programs.Depend(t)
	o.Exe = filepath.Join(bin, "ttmon-sim")
	h, err := sim.Start(o)
	var no *sim.NoPrivilegeError
	if errors.As(err, &no) {
		t.Skipf("a simulated host needs %s, which is missing here", no.Missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the simulated host: %v", err)
		}
	})
	return h
}

// alone is for tests of what goes through all processes (a ttmond, ttmon
// stale) that assert what it finds: to it the programs of other simulated hosts
// are containers with a /dev/shm of their own. False: it was played, elsewhere.
func alone(t *testing.T) bool {
	t.Helper()
	programs.Depend(t)
	return hermetic.Alone(t)
}

// ctl makes something happen on the host.
func ctl(t *testing.T, h *sim.Host, args ...string) string {
	t.Helper()
	if strings.Contains(strings.Join(args, " "), "user=") {
		hermetic.NeedOtherUsers(t)
	}
	out, err := h.Ctl(args...)
	if err != nil {
		t.Fatalf("ctl %v: %v", args, err)
	}
	return out
}

// result is what a command left behind.
type result struct {
	out, err string
	code     int
}

// runIn runs ttmon inside the host. A command that does not come back is the
// worst failure of all, so there is a limit, far above any machine's noise.
func runIn(t *testing.T, h *sim.Host, args ...string) result {
	t.Helper()
	return runProgram(t, h, filepath.Join(bin, "ttmon"), args...)
}

func runProgram(t *testing.T, h *sim.Host, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := h.Command(ctx, program, args...)
	cmd.Env = environment(t)
	return finish(t, cmd)
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %v: %v", cmd.Args, err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// smi takes a snapshot with the real binary and expects the exit code.
func smi(t *testing.T, h *sim.Host, code int, args ...string) *model.Snapshot {
	t.Helper()
	r := runIn(t, h, append([]string{"smi", "--json", "--direct"}, args...)...)
	if r.code != code {
		t.Errorf("ttmon smi --json %v: exit code %d, want %d; it said %q", args, r.code, code, r.err)
	}
	s, err := wire.Decode([]byte(r.out))
	if err != nil {
		t.Fatalf("reading the snapshot: %v\n%s%s", err, r.out, r.err)
	}
	return s
}

// device is the device with an index; the test ends if it is not there.
func device(t *testing.T, s *model.Snapshot, index int) *model.Device {
	t.Helper()
	d := s.Device(index)
	if d == nil {
		t.Fatalf("no device %d in the snapshot", index)
	}
	return d
}

func wantState(t *testing.T, d *model.Device, want model.State) {
	t.Helper()
	if d.State != want {
		t.Errorf("device %d is %s (%+v), want %s", d.Index, d.State, d.StateReason, want)
	}
}

// wantValue compares a reading with a value.
func wantValue[T comparable](t *testing.T, what string, got model.Reading[T], want T) {
	t.Helper()
	if v, ok := got.Get(); !ok || v != want {
		t.Errorf("%s: %v (%s), want %v", what, got.V, got.Reason(), want)
	}
}

// wantBytes checks the number of a memory figure, whatever its bound.
func wantBytes(t *testing.T, what string, got model.Bytes, want uint64) {
	t.Helper()
	if n, _, ok := got.Best(); !ok || n != want {
		t.Errorf("%s: %d (%s), want %d", what, n, got.Status(), want)
	}
}

// wantNoBytes checks that there is no figure, and why.
func wantNoBytes(t *testing.T, what string, got model.Bytes, want model.Status) {
	t.Helper()
	if got.Status() != want {
		n, _, _ := got.Best()
		t.Errorf("%s: %d, status %s, want %s", what, n, got.Status(), want)
	}
}

// doubted reports whether there is a doubt of a kind.
func doubted(list []model.Doubt, kind model.DoubtKind) bool {
	return slices.ContainsFunc(list, func(d model.Doubt) bool { return d.Kind == kind })
}

// wantMissing checks that there is no value, and the reason's first word.
func wantMissing[T any](t *testing.T, what string, got model.Reading[T], want model.Status) {
	t.Helper()
	if got.Status != want {
		t.Errorf("%s: %v, status %s (%s), want %s", what, got.V, got.Status, got.Why, want)
	}
}
