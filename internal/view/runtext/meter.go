package runtext

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Meter is the line that shows what is held while a program runs. It writes
// over itself.
type Meter struct{ shown bool }

// Append appends the line; held is by chip and pool.
func (m *Meter) Append(dst []byte, held map[uint64]map[model.Pool]uint64, elapsed time.Duration, width int) []byte {
	text := "ttmon " + clock(elapsed.Seconds())
	for i, id := range slices.Sorted(maps.Keys(held)) {
		if i == 4 {
			text += fmt.Sprintf("  and %d chips more", len(held)-i)
			break
		}
		text += fmt.Sprintf("  chip %d", id)
		if len(held) <= 4 && i > 0 {
			text += ""
		}
		for _, pool := range model.Pools() {
			if n := held[id][pool]; n > 0 {
				text += " " + words.PoolName(pool) + " " + words.Bytes(n)
			}
		}
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
