package blocks

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// LedgerPeak is the most that lists of a pool held, as a ledger has it.
type LedgerPeak struct {
	Bytes uint64
	Bound model.Bound
	At    time.Time
	List  int // that held it; -1: none held anything
}

// PeakOf is the most that some lists of a pool held on some chips: chips says on how
// many of them a list is. Of lists that were there one after the other it is that of
// the one that held most; where two were there at once they may have held more.
func PeakOf(l *ledgerfile.Ledger, lists []int, chips func(list int) uint64) LedgerPeak {
	top, peaks := LedgerPeak{List: -1}, 0
	if l.Lost > 0 {
		top.Bound = model.AtLeast
	}
	for _, i := range lists {
		x := &l.Lists[i]
		if x.Banks == 0 && x.Total.Blocks > 0 {
			top.Bound = model.AtLeast
		}
		n := x.Peak.Bytes * uint64(x.Banks) * chips(i)
		if n == 0 {
			continue
		}
		peaks++
		if top.List < 0 || n > top.Bytes {
			top.List, top.Bytes, top.At = i, n, x.PeakTime
		}
	}
	if peaks > 1 && overlap(l, lists) {
		top.Bound = model.AtLeast
	}
	return top
}

// overlap reports whether two lists that held something were there at once:
// then they may have held more together than either did.
func overlap(l *ledgerfile.Ledger, lists []int) bool {
	for i, a := range lists {
		for _, b := range lists[:i] {
			x, y := &l.Lists[a], &l.Lists[b]
			if x.Peak.Bytes == 0 || y.Peak.Bytes == 0 {
				continue
			}
			if (x.State == ledgerfile.Open || x.Closed.After(y.Made)) && (y.State == ledgerfile.Open || y.Closed.After(x.Made)) {
				return true
			}
		}
	}
	return false
}

// ChipsOf are the chips that a list stands for; none: that could not be told. A list of
// which no chip is known is of the only one that the process has.
func ChipsOf(l *ledgerfile.Ledger, x *ledgerfile.List) (ids []uint64) {
	for _, n := range x.Chips {
		ids = append(ids, l.Chips[n].ID)
	}
	if len(ids) == 0 && len(l.Chips) == 1 {
		ids = append(ids, l.Chips[0].ID)
	}
	return ids
}
