package node

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
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

// The blocks of watched programs are those configured, and never more than fit.
func TestBlocksFit(t *testing.T) {
	unit := newMemoryBudget(2 << 30)
	for configured, want := range map[int64]int64{0: unit.watched.All, 1000: 1000, unit.watched.All + 1: unit.watched.All} {
		t.Run(fmt.Sprint(configured), func(t *testing.T) {
			if got := unit.blocks(configured); got.All != want || got.PerUID != want/2 || got.Reserve != want/8 {
				t.Errorf("%d configured: %+v, want %d", configured, got, want)
			}
		})
	}
}
