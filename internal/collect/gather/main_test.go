package gather

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// reporterDir makes the test binary a program that keeps a ledger there until its
// standard input ends.
const reporterDir = "TTMON_TEST_REPORTER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(reporterDir); dir != "" {
		if _, err := ledgerfile.NewReporter(dir, 16); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	hermetic.Main(m)
}
