package workload_test

import (
	"os"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/workload"
)

// A simulated host is this program, started again. Workloads are TestMain's.
func init() {
	if os.Getenv(workload.Env) == "" {
		sim.Reexec()
	}
}

// start starts a host that ends with the test.
func start(t *testing.T, boards string, procs ...string) *sim.Host {
	t.Helper()
	needFUSE(t)
	h, err := sim.Start(sim.Options{Boards: boards, Procs: procs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// refused is why a host is not started.
func refused(t *testing.T, boards string, procs ...string) string {
	t.Helper()
	needFUSE(t)
	h, err := sim.Start(sim.Options{Boards: boards, Procs: procs})
	if err == nil {
		h.Close()
		t.Fatalf("%v was accepted", procs)
	}
	return err.Error()
}

func needFUSE(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs /dev/fuse: %v", err)
	}
	f.Close()
}
