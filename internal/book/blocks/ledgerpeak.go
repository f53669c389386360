package blocks

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// LedgerPlace is where a process holds memory of a pool: on a chip, on a device as a
// whole (chip 0), or on all of its devices together (model.AllDevices). Chips that are
// behind no device of this host are on model.NoDevice.
type LedgerPlace struct {
	Device int
	Chip   uint64
	Pool   model.Pool
}

// UnknownChip is the chip of lists of which it could not be told. It is on
// model.NoDevice, and in no figure of a device.
const UnknownChip = ^uint64(0)

// LedgerPool is what a ledger says of a place: the numbers of its lists, and the most
// that they held.
type LedgerPool struct {
	LedgerPlace
	Lists []int
	Peak  LedgerPeak
}

// LedgerPeak is the most that lists of a pool held, as a ledger has it.
type LedgerPeak struct {
	Bytes uint64
	Bound model.Bound
	Most  uint64 // what a peak that is not exact was at most; 0: not known
	At    time.Time
	List  int // that held it; -1: none held anything
}

// LedgerPools gathers the lists of a ledger by the places where they are, in order.
// deviceOf says which device a chip is on. L1 that was given out core by core is left
// out: no figure of it is known.
func LedgerPools(l *ledgerfile.Ledger, deviceOf func(chip uint64) int) []LedgerPool {
	lists, chips := map[LedgerPlace][]int{}, map[LedgerPlace]map[int]uint64{} // lists of a place, and on how many chips of it
	bound := ledgerBound(l)
	for i := range l.Lists {
		list := &l.Lists[i]
		pool, ok := Summed(l, list)
		if list.State == ledgerfile.Unused || !ok {
			continue
		}
		ids := ChipsOf(l, list)
		if list.Total.Blocks > 0 && (len(ids) == 0 || list.Inherited || list.Late) { // it may add to what the others held
			bound = max(bound, model.AtLeast)
		}
		add := func(device int, chip uint64) {
			at := LedgerPlace{device, chip, pool}
			if chips[at] == nil {
				chips[at] = map[int]uint64{}
			}
			if chips[at][i]++; chips[at][i] == 1 {
				lists[at] = append(lists[at], i)
			}
		}
		for _, id := range ids {
			device := deviceOf(id)
			add(model.AllDevices, 0)
			add(device, 0)
			add(device, id)
		}
		if len(ids) == 0 {
			add(model.AllDevices, 0)
			add(model.NoDevice, UnknownChip)
		}
	}
	var out []LedgerPool
	for _, at := range slices.SortedFunc(maps.Keys(lists), LedgerPlace.Compare) {
		peak := peakOf(l, lists[at], chips[at])
		if peak.Bound = max(peak.Bound, bound); bound != model.Exact {
			peak.Most = 0
		}
		out = append(out, LedgerPool{at, lists[at], peak})
	}
	return out
}

// Summed is the pool of a list that can be added to others; ok is false for one that
// the model does not account for, and for L1 that was given out core by core, of which
// several lists have the same blocks.
func Summed(l *ledgerfile.Ledger, x *ledgerfile.List) (pool model.Pool, ok bool) {
	pool, ok = PoolOf(x.Pool)
	return pool, ok && (pool != model.L1 || l.Flags&ledgerfile.PerCore == 0)
}

// Compare orders places by device, chip and pool.
func (p LedgerPlace) Compare(q LedgerPlace) int {
	return cmp.Or(cmp.Compare(p.Device, q.Device), cmp.Compare(p.Chip, q.Chip), cmp.Compare(p.Pool, q.Pool))
}

// ledgerBound is what the peaks of a ledger are at best.
func ledgerBound(l *ledgerfile.Ledger) model.Bound {
	switch {
	case l.Unknown > 0: // events contradict each other
		return model.Unsure
	case l.Lost > 0 || l.Unmatched > 0 || l.Flags&ledgerfile.Late != 0: // something was allocated before, or elsewhere
		return model.AtLeast
	}
	return model.Exact
}

// peakOf is the most that some lists of a pool held on so many chips each. Of lists
// that were there one after the other it is that of the one that held most; where two
// were there at once they may have held more.
func peakOf(l *ledgerfile.Ledger, lists []int, chips map[int]uint64) LedgerPeak {
	top, peaks, sum := LedgerPeak{List: -1}, 0, uint64(0)
	for _, i := range lists {
		x := &l.Lists[i]
		if x.Banks == 0 && x.Total.Blocks > 0 {
			top.Bound = model.AtLeast
		}
		n := x.Peak.Bytes * uint64(x.Banks) * chips[i]
		if n == 0 {
			continue
		}
		peaks, sum = peaks+1, sum+n
		if top.List < 0 || n > top.Bytes {
			top.List, top.Bytes, top.At = i, n, x.PeakTime
		}
	}
	if peaks > 1 && overlap(l, lists) {
		if top.Bound == model.Exact {
			top.Most = sum
		}
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

// ChipPool is a pool of a chip.
type ChipPool struct {
	Chip uint64 `json:"chip_id,string"`
	Pool string `json:"pool"`
}

// Frees are the pools of chips of which a process freed at least as many blocks as are
// left of it.
func Frees(l *ledgerfile.Ledger) []ChipPool {
	out := []ChipPool{}
	for _, p := range LedgerPools(l, func(uint64) int { return 0 }) {
		var total, left uint64
		for _, i := range p.Lists {
			total, left = total+l.Lists[i].Total.Blocks, left+l.Lists[i].Left.Blocks+l.Lists[i].Live.Blocks
		}
		if p.Chip != 0 && total >= 2*left {
			out = append(out, ChipPool{p.Chip, p.Pool.String()})
		}
	}
	return out
}
