package sorted

import (
	"cmp"
	"slices"
	"testing"
)

func TestSorts(t *testing.T) {
	type pair struct{ key, at int }
	list := []pair{{3, 0}, {1, 1}, {2, 2}, {1, 3}, {3, 4}, {1, 5}}
	byKey := func(a, b *pair) int { return cmp.Compare(a.key, b.key) }
	stable := slices.Clone(list)
	Stable(stable, byKey)
	if want := []pair{{1, 1}, {1, 3}, {1, 5}, {2, 2}, {3, 0}, {3, 4}}; !slices.Equal(stable, want) {
		t.Errorf("stable: %v", stable)
	}
	By(list, byKey)
	if !slices.IsSortedFunc(list, func(a, b pair) int { return byKey(&a, &b) }) || len(list) != 6 {
		t.Errorf("by key: %v", list)
	}
}
