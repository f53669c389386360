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

// boundOf is the bound of figures that are tracked in a certain way.
func boundOf(t model.Tracking) float64 {
	if t == model.TrackOK {
		return exact
	}
	return atLeast
}
