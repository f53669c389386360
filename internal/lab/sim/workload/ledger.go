package workload

import (
	"context"
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// ledger is a program whose allocator reports each block itself, and what it
// holds over all banks.
type ledger struct {
	DRAM   size   `set:"dram=8G" help:"bytes held on each chip"`
	Blocks int    `set:"blocks=4" in:"1 65535" help:"blocks that they are made of (1)"`
	Hole   size   `set:"hole=64M" help:"bytes that are free after each block but the last (0)"`
	Tags   string `set:"tags=weights/kv" help:"what the program calls its blocks of DRAM, in turn (model)"`
	Size   size   `set:"size=32640M" help:"DRAM of a chip (32640M, that of a p150)"`
	Banks  int    `set:"banks=8" in:"1 255" help:"banks that it is made of (8)"`
	L1     size   `set:"l1=30M" help:"bytes held in the L1 of each chip, in one block (0)"`
	library
	Work script `set:"work=STEPS"`
}

func newLedger() kind { return &ledger{Blocks: 1, Size: 32640 << 20, Banks: 8, Tags: "model"} }

func (l *ledger) check() error {
	if l.L1 > l1Size {
		return fmt.Errorf("a chip has %d bytes of L1 here", l1Size)
	}
	if l.perBlock() == 0 {
		return fmt.Errorf("dram must be enough for a byte of each block in each bank")
	}
	if l.DRAM > l.Size || l.Hole > (l.Size-l.DRAM)/size(l.Blocks) {
		return fmt.Errorf("dram=%d in %d blocks with holes of %d does not fit into size=%d", l.DRAM, l.Blocks, l.Hole, l.Size)
	}
	return nil
}

// perBlock is what a block takes in each bank.
func (l *ledger) perBlock() uint64 { return uint64(l.DRAM) / uint64(l.Banks) / uint64(l.Blocks) }

func (l *ledger) run(ctx context.Context, s Spec, chips []chipRef, link link) error {
	unmap, err := l.mapIt()
	if err != nil {
		return err
	}
	defer unmap()
	r, err := ledgerfile.NewReporter(s.Root+"/dev/shm", (l.Blocks+1)*max(len(chips), 1))
	if err != nil {
		return err
	}
	defer r.Close()
	for _, c := range chips {
		if err := l.fill(r, c); err != nil {
			return err
		}
	}
	if l.Work == nil {
		link.answer(ready)
		<-ctx.Done()
		return nil
	}
	w, err := newWorker(r, s.Load, l.Work, chips, link)
	if err != nil {
		return err
	}
	link.answer(ready)
	w.run(ctx)
	return nil
}

// The L1 of a chip, as a p150 has it.
const (
	l1Cores = 120
	l1Size  = l1Cores * 1408 << 10
)

// fill allocates the blocks of a chip, from the first address on.
func (l *ledger) fill(r *ledgerfile.Reporter, c chipRef) error {
	banks, tags, bytes := uint64(l.Banks), strings.Split(l.Tags, "/"), l.perBlock()
	list, err := r.List(ledgerfile.Geometry{
		Chip: c.id, Logical: c.logical, Pool: ledgerfile.DRAM, Banks: uint32(banks), Capacity: uint64(l.Size) / banks,
	})
	if err != nil {
		return err
	}
	for i := range l.Blocks {
		at := uint64(i) * (bytes + uint64(l.Hole)/banks)
		if err := list.AllocatedFor(at, bytes, bytes*banks, tags[i%len(tags)]); err != nil {
			return err
		}
	}
	if l.L1 == 0 {
		return nil
	}
	list, err = r.List(ledgerfile.Geometry{Chip: c.id, Logical: c.logical, Pool: ledgerfile.L1, Banks: l1Cores, Capacity: l1Size / l1Cores})
	if err != nil {
		return err
	}
	return list.AllocatedFor(0, uint64(l.L1)/l1Cores, uint64(l.L1), "activations")
}
