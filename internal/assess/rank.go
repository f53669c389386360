package assess

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// place is where a kind stands in the ranking.
type place struct {
	kind  model.ConditionKind
	level model.Level
	state bool // it is a state of the device: everything about a device that a user should act on is
}

// ranking orders the kinds, the worst first. Those of one level stand
// together, so that ordering by kind also orders by level.
var ranking = []place{
	{model.ConditionLost, model.Critical, true},
	{model.ConditionHung, model.Critical, true},
	{model.ConditionUnbound, model.Critical, false},
	{model.ConditionLinkDown, model.Critical, true},
	{model.ConditionUnknown, model.Warning, true},
	{model.ConditionResetting, model.Warning, true},
	{model.ConditionThrottled, model.Warning, true},
	{model.ConditionHot, model.Warning, true},
	{model.ConditionWeakLink, model.Warning, true},
	{model.ConditionSlowLink, model.Warning, true},
	{model.ConditionStuck, model.Warning, true},
	{model.ConditionMemoryFailed, model.Warning, true},
	{model.ConditionMemoryErrors, model.Warning, true},
	{model.ConditionReadStalled, model.Warning, true},
	{model.ConditionTripped, model.Info, false},
	{model.ConditionMemoryFull, model.Info, false},
	{model.ConditionStaleMemory, model.Info, false},
	{model.ConditionOK, model.Fine, true},
}

// Kinds lists all kinds, the worst first.
func Kinds() []model.ConditionKind {
	list := make([]model.ConditionKind, len(ranking))
	for i := range ranking {
		list[i] = ranking[i].kind
	}
	return list
}

// States lists the kinds that are states of a device, the worst first and ok
// last.
func States() []model.ConditionKind {
	var list []model.ConditionKind
	for i := range ranking {
		if ranking[i].state {
			list = append(list, ranking[i].kind)
		}
	}
	return list
}

// rank is the place of a kind: the worst has 0. One that this release does not
// know, of a newer ttmond, stands before ok.
func rank(k model.ConditionKind) int {
	if i := slices.IndexFunc(ranking, func(p place) bool { return p.kind == k }); i >= 0 {
		return i
	}
	return len(ranking) - 1
}

// LevelOf is how much a kind matters; of one that is not known, that it is
// worth knowing.
func LevelOf(k model.ConditionKind) model.Level {
	if p := ranking[rank(k)]; p.kind == k {
		return p.level
	}
	return model.Info
}

// isState reports whether a kind is a state of a device.
func isState(k model.ConditionKind) bool { p := ranking[rank(k)]; return p.kind == k && p.state }

// compare orders conditions, the worst first.
func compare(a, b *model.Condition) int {
	return cmp.Or(
		cmp.Compare(b.Level, a.Level), cmp.Compare(rank(a.Kind), rank(b.Kind)),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Process.PID, b.Process.PID),
	)
}

// CompareKinds orders kinds, the worst first.
func CompareKinds(a, b model.ConditionKind) int { return cmp.Compare(rank(a), rank(b)) }

// Fill is the level of a bar of memory that is so full: amber where the next
// allocation may fail. By itself that is no trouble: full memory is what
// memory is for.
func Fill(ratio float64) model.Level {
	if ratio >= nearlyFull {
		return model.Warning
	}
	return model.Fine
}

// Tally is how many devices of a host are in each state.
type Tally map[model.ConditionKind]int

// Level is that of the worst state that a device is in.
func (t Tally) Level() (l model.Level) {
	for k, n := range t {
		if n > 0 {
			l = max(l, LevelOf(k))
		}
	}
	return l
}

// Count is the number of devices.
func (t Tally) Count() (n int) {
	for _, c := range t {
		n += c
	}
	return n
}

// Counts lists the tally, the worst first and ok last.
func (t Tally) Counts() []Count {
	var list []Count
	for _, k := range States() {
		if t[k] > 0 {
			list = append(list, Count{k, LevelOf(k), t[k]})
		}
	}
	return list
}

// Compare orders hosts by their tallies, the worst first: the one that has more
// devices in the worst state.
func (t Tally) Compare(u Tally) int {
	for _, k := range States() {
		if LevelOf(k) >= model.Warning && t[k] != u[k] {
			return u[k] - t[k]
		}
	}
	return 0
}
