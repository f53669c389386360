package assess

import (
	"cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// States lists the kinds that are states of a device, the worst first and ok
// last.
func States() []model.ConditionKind {
	var list []model.ConditionKind
	for i := range model.ConditionKinds {
		if k := &model.ConditionKinds[i]; k.State {
			list = append(list, k.Kind)
		}
	}
	return list
}

// LevelOf is how much a kind matters.
func LevelOf(k model.ConditionKind) model.Level { return k.Row().Level }

// compare orders conditions, the worst first.
func compare(a, b *model.Condition) int {
	return cmp.Or(
		cmp.Compare(b.Level, a.Level), CompareKinds(a.Kind, b.Kind),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Process.PID, b.Process.PID),
	)
}

// CompareKinds orders kinds, the worst first.
func CompareKinds(a, b model.ConditionKind) int { return cmp.Compare(a.Rank(), b.Rank()) }

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
