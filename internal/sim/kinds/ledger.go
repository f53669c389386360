package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/sim/metal"
	"github.com/ttmon/ttmon/internal/sim/rhythm"
	"github.com/ttmon/ttmon/internal/sim/workload"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const ledgerUsage = `kind=ledger        keep a ledger, as programs with libttmon in them do: every block is seen
  dram=8G            bytes held on each chip
  blocks=4           blocks that they are made of (1)
  hole=64M           bytes that are free after each block but the last (0)
  tags=weights/kv    what the program calls its blocks of DRAM, in turn (model)
  size=32640M        DRAM of a chip (32640M, that of a p150)
  banks=8            banks that it is made of (8)
  l1=30M             bytes held in the L1 of each chip, in one block (0)
  lib=PATH           map PATH, as a program does that tt-metal's library is linked to
` + rhythm.Usage

// ledgerSettings is what a workload with a ledger holds, over all banks.
type ledgerSettings struct {
	dram, blocks, hole, size, banks, l1 uint64
	works                               bool
	lib                                 string
	tags                                []string
}

func parseLedger(p workload.Params) (l ledgerSettings, err error) {
	l = ledgerSettings{blocks: 1, size: 32640 << 20, banks: 8, tags: []string{"model"}}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		switch text := p[key]; key {
		case "dram":
			l.dram, err = workload.ParseBytes(text)
		case "hole":
			l.hole, err = workload.ParseBytes(text)
		case "l1":
			if l.l1, err = workload.ParseBytes(text); l.l1 > l1Size {
				err = fmt.Errorf("a chip has %d bytes of L1 here", l1Size)
			}
		case "lib":
			l.lib = text
		case "tags":
			l.tags = strings.Split(text, "/")
		case "work":
			_, err = rhythm.Parse(text)
			l.works = true
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
func keepLedger(ctx context.Context, s workload.Spec, link workload.Link) error {
	l, err := parseLedger(s.Params)
	if err != nil {
		return err
	}
	chips, err := chipsOf(s)
	if err != nil {
		return err
	}
	if l.lib != "" {
		library, err := metal.MapLibrary(l.lib)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(library) }()
	}
	r, err := ledgerfile.NewReporter(s.Root+"/dev/shm", (int(l.blocks)+1)*max(len(chips), 1))
	if err != nil {
		return err
	}
	defer r.Close()
	for _, c := range chips {
		if err := l.fill(r, c); err != nil {
			return err
		}
	}
	if !l.works {
		link.Ready()
		<-ctx.Done()
		return nil
	}
	w, err := newWorker(r, s, chips, link)
	if err != nil {
		return err
	}
	link.Ready()
	w.run(ctx)
	return nil
}

// The L1 of a chip, as a p150 has it.
const (
	l1Cores = 120
	l1Size  = l1Cores * 1408 << 10
)

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
		if err := list.AllocatedFor(i*(size+l.hole/l.banks), size, size*l.banks, l.tags[i%uint64(len(l.tags))]); err != nil {
			return err
		}
	}
	if l.l1 == 0 {
		return nil
	}
	list, err = r.List(ledgerfile.Geometry{Chip: c.id, Logical: c.logical, Pool: ledgerfile.L1, Banks: l1Cores, Capacity: l1Size / l1Cores})
	if err != nil {
		return err
	}
	return list.AllocatedFor(0, l.l1/l1Cores, l.l1, "activations")
}
