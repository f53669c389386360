package track

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// reportsVar makes this test binary a program in Go that reports its blocks:
// a process cannot read its own ledger.
const reportsVar = "TTMON_TEST_REPORTS"

// TestReporterUnderAReader: a program that reports with the Go package, as fast
// as it can, is read while it does, and killed in the middle. Every block that
// is read is one that it had, and sums and blocks agree.
func TestReporterUnderAReader(t *testing.T) {
	if dir := os.Getenv(reportsVar); dir != "" {
		reportForever(dir)
		return
	}
	dir := t.TempDir()
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestReporterUnderAReader$")
		cmd.Env = append(os.Environ(), reportsVar+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := NewReader(Options{Dir: dir, Remove: true})
		read, held := 0, 0
		for limit := time.Now().Add(5 * time.Minute); held < 10 && !t.Failed(); {
			for _, p := range r.Read(nil).Processes {
				check(t, p.Ledger)
				read++
				if len(p.Ledger.Blocks) > 0 {
					held++
				}
			}
			if time.Now().After(limit) {
				_ = cmd.Process.Kill()
				t.Fatalf("%d reads, of which %d found blocks", read, held)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s := r.Read(nil)
		if len(s.Ended) != 1 || len(s.Processes)+len(s.Failures) > 0 {
			t.Errorf("of the dead: %+v", s)
		}
		for _, e := range s.Ended {
			check(t, e.Ledger)
		}
		r.Close()
	}
}

// reportForever does what the driver's storm does.
func reportForever(dir string) {
	r, err := ledgerfile.NewReporter(dir, 1000)
	if err != nil {
		panic(err)
	}
	list, err := r.List(ledgerfile.Geometry{Chip: 5, Pool: ledgerfile.DRAM, Banks: 8, Capacity: 512 * 4096})
	if err != nil {
		panic(err)
	}
	rng, taken := rand.New(rand.NewPCG(1, 2)), map[uint64]bool{}
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); { // should no test kill it
		address := rng.Uint64N(512) * 4096
		if taken[address] {
			err = list.Freed(address)
		} else {
			err = list.Allocated(address, libtest.BlockBytes(address), fmt.Sprintf("layer %d", address/4096%10))
		}
		if taken[address] = !taken[address]; err != nil {
			panic(err)
		}
	}
}
