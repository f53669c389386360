package words

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// unmatchedChips says which chips are accounted for and shown with no device: those
// that are one of several devices, together, and those of no device here.
func (l *list) unmatchedChips() {
	var several [][]*model.Chip // by candidates
	var mock []*model.Chip
	for i := range l.snap.Unmatched {
		c := &l.snap.Unmatched[i]
		if len(c.Candidates) == 0 {
			mock = append(mock, c)
			continue
		}
		at := slices.IndexFunc(several, func(g []*model.Chip) bool { return slices.Equal(g[0].Candidates, c.Candidates) })
		if at < 0 {
			several = append(several, []*model.Chip{c})
		} else {
			several[at] = append(several[at], c)
		}
	}
	switch len(mock) {
	case 0:
	case 1:
		text := "chip " + chipID(mock[0].ID) + " is none of this host's devices (a mock or simulator run)"
		l.add(Info, "unmatched", model.NoDevice, withUse(text, mock...))
	default:
		text := strconv.Itoa(len(mock)) + " chips are none of this host's devices (mock or simulator runs)"
		l.add(Info, "unmatched", model.NoDevice, withUse(text, mock...))
	}
	for _, g := range several {
		text := "chip " + chipID(g[0].ID) + " is one of " + devices(g[0].Candidates) + ", and it is not known which"
		if len(g) > 1 {
			ids := make([]string, len(g))
			for i, c := range g {
				ids[i] = chipID(c.ID)
			}
			text = "chips " + strings.Join(ids, ", ") + " are among " + devices(g[0].Candidates) + ", and it is not known which is which"
		}
		l.add(Info, "ambiguous", model.NoDevice, withUse(text, g...))
	}
}

// withUse adds what chips hold together, if anything is known of them.
func withUse(text string, chips ...*model.Chip) string {
	var sums [model.NumPools]model.Sum
	known := false
	for _, c := range chips {
		for p := range c.Memory.Pools {
			sums[p].Add(c.Memory.Pools[p].Used)
		}
	}
	var held model.PoolBytes
	for p := range sums {
		held[p] = sums[p].Bytes()
		known = known || held[p].Known()
	}
	switch holds := pools(held); {
	case holds != "":
		return text + ": " + holds
	case known:
		return text + ": nothing allocated"
	default:
		return text
	}
}

// elsewhere is where something lies that lies on no device of this host, or on
// one that cannot be told.
func (l *list) elsewhere(list []*model.StaleSlot) string {
	for i := range l.snap.Unmatched {
		c := &l.snap.Unmatched[i]
		if len(c.Candidates) > 0 && slices.ContainsFunc(list, func(g *model.StaleSlot) bool { return c.ID.Known() && g.ChipID == c.ID.V }) {
			return " (among " + devices(c.Candidates) + ")"
		}
	}
	return " (on a chip that is not here)"
}
