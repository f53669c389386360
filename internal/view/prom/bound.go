package prom

import "github.com/ttmon/ttmon/internal/model"

// Bounds as numbers, so that the maximum over figures is the bound of their
// sum. A companion series has the bound of a figure, whenever there is the
// figure: a label on the figure itself would end one series and begin another
// each time a doubt comes or goes.
const (
	exact   = 0
	atLeast = 1
	unsure  = 2
)

// boundOf is the bound of a figure that is known.
func boundOf(b model.Bytes) float64 {
	_, is, _ := b.Best()
	return bound(is)
}

func bound(b model.Bound) float64 {
	switch b {
	case model.Exact:
		return exact
	case model.AtLeast:
		return atLeast
	}
	return unsure
}
