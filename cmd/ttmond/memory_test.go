package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/ledger"
)

func TestCgroupLimit(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"sys/fs/cgroup/memory/system.slice/ttmond.service/memory.limit_in_bytes": "3000\n",
		"sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes":                "2000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":                             "9223372036854771712\n",
		"sys/fs/cgroup/a/memory.max":                                             "max\n",
		"sys/fs/cgroup/a/b/memory.max":                                           "7000\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]int64{
		"8:memory:/system.slice/ttmond.service": 2000, // that above is smaller
		"8:cpu,memory:/system.slice":            2000,
		"8:cpu,cpuacct:/system.slice":           math.MaxInt64,
		"0::/a/b":                               7000,
		"0::/a":                                 math.MaxInt64,
		"0::/../../elsewhere":                   math.MaxInt64,
		"8:memory:/not/there":                   9223372036854771712,
		"nonsense":                              math.MaxInt64,
	} {
		if got := cgroupLimit(root, line); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}

// What the unit allows is enough for what is configured by default, twice: a
// successor has it as well.
func TestMemoryFits(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	unit := newAllowance(2 << 30) // MemoryMax=2G
	if got := unit.maxBuffers(ledger.DefaultMaxBuffers, quiet); got != ledger.DefaultMaxBuffers {
		t.Errorf("the unit has room for %d buffers, and %d is the default", got, ledger.DefaultMaxBuffers)
	}
	if 2*unit.heap > unit.limit*9/10 {
		t.Errorf("two heaps of %d leave the kernel nothing of %d", unit.heap, unit.limit)
	}
	if got := newAllowance(160<<20).maxBuffers(ledger.DefaultMaxBuffers, quiet); got < 100_000 || got*bufferBytes > 64<<20 {
		t.Errorf("160 MiB have room for %d buffers", got)
	}
	if got := newAllowance(0).maxBuffers(ledger.MaxMaxBuffers, quiet); got != ledger.MaxMaxBuffers {
		t.Errorf("without a limit there is room for %d buffers", got)
	}
}
