package runtext

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Meter is the line that shows what is held while a program runs. It writes
// over itself.
type Meter struct{ shown bool }

// Append appends the line; held is by chip and pool, names are those of chips
// of this host. Chips that hold the same, as those of a mesh do, are one.
func (m *Meter) Append(dst []byte, held map[uint64]map[model.Pool]uint64, names map[uint64]string, elapsed time.Duration, width int) []byte {
	text := "ttmon " + clock(elapsed.Seconds())
	var amounts []string // in the order of the first chip that has each
	chips := map[string][]uint64{}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		amount := ""
		for _, pool := range model.Pools() {
			if n := held[id][pool]; n > 0 {
				amount += " " + words.PoolName(pool) + " " + words.Bytes(n)
			}
		}
		if amount == "" {
			continue
		}
		if chips[amount] == nil {
			amounts = append(amounts, amount)
		}
		chips[amount] = append(chips[amount], id)
	}
	for _, amount := range amounts {
		who := names[chips[amount][0]]
		switch n := len(chips[amount]); {
		case n > 1:
			who = fmt.Sprintf("each of %d chips", n)
		case who == "":
			who = fmt.Sprintf("chip %d", chips[amount][0])
		}
		text += "  " + who + amount
	}
	if len(amounts) == 0 {
		text += "  nothing held"
	}
	if width > 0 {
		text = words.Truncate(text, width-1)
	}
	m.shown = true
	return append(append(append(dst, '\r'), text...), "\x1b[K"...)
}

// Clear removes the line.
func (m *Meter) Clear(dst []byte) []byte {
	if !m.shown {
		return dst
	}
	m.shown = false
	return append(dst, "\r\x1b[K"...)
}
