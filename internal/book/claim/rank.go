package claim

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Ranks orders the sources, the best first.
var Ranks = []model.Source{
	model.FromTrack, model.FromUprobe, model.FromSocket, model.FromFDInfo, model.FromDriver, model.FromShm,
}

// Rank is the place of a source among those that speak of one process, the best
// first. A source that is known to miss something of the process ranks below all
// that are not.
func Rank(source model.Source, partial bool) int {
	n := slices.Index(Ranks, source)
	if partial {
		n += len(Ranks)
	}
	return n
}
