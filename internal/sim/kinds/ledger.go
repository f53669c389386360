package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/sim/workload"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const ledgerUsage = `kind=ledger        keep a ledger, as programs with libttmon in them do: every block is seen
  dram=8G            bytes held on each chip
  blocks=4           blocks that they are made of (1)
  hole=64M           bytes that are free after each block but the last (0)
  size=32640M        DRAM of a chip (32640M, that of a p150)
  banks=8            banks that it is made of (8)`

// ledgerSettings is what a workload with a ledger holds, over all banks.
type ledgerSettings struct {
	dram, blocks, hole, size, banks uint64
}

func parseLedger(p workload.Params) (l ledgerSettings, err error) {
	l = ledgerSettings{blocks: 1, size: 32640 << 20, banks: 8}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		switch text := p[key]; key {
		case "dram":
			l.dram, err = workload.ParseBytes(text)
		case "hole":
			l.hole, err = workload.ParseBytes(text)
		case "size":
			l.size, err = workload.ParseBytes(text)
		case "blocks":
			l.blocks, err = strconv.ParseUint(text, 10, 16)
		case "banks":
			l.banks, err = strconv.ParseUint(text, 10, 8)
		default:
			return l, fmt.Errorf("no setting %q of kind ledger; there are:\n%s", key, ledgerUsage)
		}
		if err != nil {
			return l, fmt.Errorf("%s=%s: %w", key, p[key], err)
		}
	}
	if l.blocks == 0 || l.banks == 0 || l.dram/l.blocks/l.banks == 0 {
		return l, fmt.Errorf("dram, blocks and banks must be enough for a byte of each block in each bank")
	}
	if l.dram > l.size || l.hole > (l.size-l.dram)/l.blocks {
		return l, fmt.Errorf("dram=%d in %d blocks with holes of %d does not fit into size=%d", l.dram, l.blocks, l.hole, l.size)
	}
	return l, nil
}

// keepLedger plays a program whose allocator reports each block itself.
func keepLedger(ctx context.Context, s workload.Spec, ready func()) error {
	l, err := parseLedger(s.Params)
	if err != nil {
		return err
	}
	chips, err := chipsOf(s)
	if err != nil {
		return err
	}
	r, err := ledgerfile.NewReporter(s.Root+"/dev/shm", int(l.blocks)*max(len(chips), 1))
	if err != nil {
		return err
	}
	defer r.Close()
	for _, c := range chips {
		if err := l.fill(r, c); err != nil {
			return err
		}
	}
	ready()
	<-ctx.Done()
	return nil
}

// fill allocates the blocks of a chip, from the first address on.
func (l ledgerSettings) fill(r *ledgerfile.Reporter, c chipRef) error {
	list, err := r.List(ledgerfile.Geometry{
		Chip: c.id, Logical: c.logical, Pool: ledgerfile.DRAM, Banks: uint32(l.banks), Capacity: l.size / l.banks,
	})
	if err != nil {
		return err
	}
	size := l.dram / l.banks / l.blocks
	for i := range l.blocks {
		if err := list.Allocated(i*(size+l.hole/l.banks), size, "model"); err != nil {
			return err
		}
	}
	return nil
}
