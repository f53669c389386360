package run

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestMain(m *testing.M) {
	if os.Getenv(reporterEnv) != "" {
		if err := reportWork(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hermetic.Main(m)
}

// reporterEnv makes the test binary a program that reports work.
const reporterEnv = "RUN_TEST_REPORTS_WORK"

// reportWork is a program that keeps a ledger, as libttmon does for programs of
// tt-metal: it has a chip run two operations and ends.
func reportWork() error {
	r, err := ledgerfile.NewReporter(os.Getenv("TTMON_DIR"), 1)
	if err != nil {
		return err
	}
	list, err := r.List(ledgerfile.Geometry{Chip: 42, Pool: ledgerfile.DRAM, Banks: 1, Capacity: 1 << 30})
	if err != nil {
		return err
	}
	if err := list.Allocated(0, 1<<20, ""); err != nil {
		return err
	}
	w, err := r.Work(1)
	if err != nil {
		return err
	}
	c, err := w.Chip(0)
	if err != nil {
		return err
	}
	now := ledgerfile.Now()
	w.Enqueued(2, "softmax")
	c.Report([]ledgerfile.ReportedProgram{
		{Name: "matmul", Start: now - 300*time.Microsecond, End: now - 200*time.Microsecond},
		{Name: "softmax", Start: now - 150*time.Microsecond, End: now - 100*time.Microsecond},
	})
	w.Finished()
	if err := list.Freed(0); err != nil {
		return err
	}
	return r.Close()
}
