package main

import (
	"log/slog"
	"testing"

	"github.com/ttmon/ttmon/internal/ledger"
)

// What the unit allows is enough for what is configured by default, twice: a
// successor has it as well.
func TestMemoryFits(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	unit := newMemoryBudget(2 << 30) // MemoryMax=2G
	if got := unit.maxBuffers(ledger.DefaultMaxBuffers, quiet); got != ledger.DefaultMaxBuffers {
		t.Errorf("the unit has room for %d buffers, and %d is the default", got, ledger.DefaultMaxBuffers)
	}
	if 2*unit.heap > unit.limit*9/10 {
		t.Errorf("two heaps of %d leave the kernel nothing of %d", unit.heap, unit.limit)
	}
	if got := newMemoryBudget(160<<20).maxBuffers(ledger.DefaultMaxBuffers, quiet); got < 100_000 || got*bufferBytes > 64<<20 {
		t.Errorf("160 MiB have room for %d buffers", got)
	}
	if got := newMemoryBudget(0).maxBuffers(ledger.MaxMaxBuffers, quiet); got != ledger.MaxMaxBuffers {
		t.Errorf("without a limit there is room for %d buffers", got)
	}
}
