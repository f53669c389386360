package blocks

import (
	"slices"
	"time"
)

// Quarters is how many parts the time is divided into in which blocks were made.
const Quarters = 4

// Quarter is the part of a span in which something happened so long after its
// beginning.
func Quarter(after, span time.Duration) int {
	return min(int(after/(span/Quarters+1)), Quarters-1)
}

// Growth counts the blocks of a line that a running program holds, by when they
// were made. What a run left is judged by quarters of its allocations.
type Growth struct {
	First, End int64 // Unix time in ns: of the line's oldest block, and of the program's youngest
	counts     [Quarters]int
}

// Add counts a block of the line.
func (g *Growth) Add(born int64) {
	if born >= g.First && born <= g.End && g.End > g.First {
		g.counts[Quarter(time.Duration(born-g.First), time.Duration(g.End-g.First))]++
	}
}

// Steady reports whether blocks came in each quarter of the time.
func (g *Growth) Steady() bool { return !slices.Contains(g.counts[:], 0) }
