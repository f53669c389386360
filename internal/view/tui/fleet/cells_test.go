package fleet

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// However many chips a host has, and however few cells there are for them: a cell
// shows the worst of its chips, so none in trouble is invisible and no cell without
// one looks like it.
func TestNoBadChipIsInvisible(t *testing.T) {
	var bad []model.ConditionKind
	for _, k := range assess.States() {
		if assess.LevelOf(k) > model.Fine {
			bad = append(bad, k)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, width := rapid.IntRange(1, 300).Draw(t, "chips"), rapid.IntRange(1, 40).Draw(t, "cells")
		chips := make([]sums.Chip, n)
		for i := range chips {
			chips[i] = sums.Chip{Device: i, State: model.ConditionOK}
		}
		ill := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 5), rapid.ID[int]).Draw(t, "which")
		for _, i := range ill {
			chips[i].State = rapid.SampledFrom(bad).Draw(t, "state")
		}
		s := New(Options{})
		s.chips["a"] = chips
		g := cells.NewGrid(width, 1)
		s.drawCells(g.Area(), &sums.Host{Name: "a"})
		per := max((n+width-1)/width, 1)
		well := []rune(words.StateMark(model.ConditionOK))[0]
		for x := range (n + per - 1) / per {
			worst := model.ConditionOK
			for _, c := range chips[x*per : min((x+1)*per, n)] {
				if assess.CompareKinds(c.State, worst) < 0 {
					worst = c.State
				}
			}
			c := g.At(x, 0)
			if want := []rune(words.StateMark(worst))[0]; c.Rune != want || (c.Rune == well) != (worst == model.ConditionOK) {
				t.Fatalf("cell %d of %d chips is %c, and the worst of its chips is %s", x, n, c.Rune, worst)
			}
		}
	})
}
