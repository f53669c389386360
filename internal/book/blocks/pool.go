package blocks

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// PoolOf is the model's name of a ledger's pool; ok is false for one that it
// does not account for.
func PoolOf(p ledgerfile.Pool) (pool model.Pool, ok bool) {
	switch p {
	case ledgerfile.DRAM:
		return model.DRAM, true
	case ledgerfile.L1:
		return model.L1, true
	case ledgerfile.L1Small:
		return model.L1Small, true
	case ledgerfile.Trace:
		return model.Trace, true
	}
	return 0, false
}

// FromLedger is an empty list of the shape that libttmon wrote down.
func FromLedger(x *ledgerfile.List, pool model.Pool) *List {
	origin := FromStart
	if x.Late {
		origin = Late
	}
	list := NewList(Geometry{
		Pool: pool, Banks: uint64(x.Banks), Base: x.Base, Capacity: x.Capacity, Align: x.Alignment, Smallest: x.Smallest,
	}, origin)
	list.Cut, list.Inherited = x.CutLow, x.Inherited
	if x.CutHigh < list.Capacity {
		list.Capacity -= x.CutHigh
	}
	return list
}
