package page

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/bankmap"
)

// maxMapHolders bounds the lines of one pool in a map. The others are one holder.
const maxMapHolders = 60

// mapHolder is a line of the program, and what it holds of a pool.
type mapHolder struct {
	// Number is its place among the lines that hold blocks of the pool, in all
	// allocators of the process: the same line has the same number, and so the same
	// colour, on each chip. 0: the line is not known.
	Number int    `json:"number"`
	Line   string `json:"line"`        // "model.py:88 kv_cache"; empty: not known, or several
	Others int    `json:"other_lines"` // how many lines it stands for, where they are too many; else 0
	Bank   uint64 `json:"bank_bytes"`  // of each bank
	Bytes  uint64 `json:"bytes"`       // of all banks of a chip
	Blocks int    `json:"blocks"`
	Oldest int64  `json:"oldest_ms"` // when the oldest block was allocated, Unix milliseconds; 0: not known
	// Grew says that the blocks it holds came step by step, in a program that frees
	// at least as much as it holds.
	Grew bool `json:"grew"`
	// Sites are the numbers that the blocks of the list have of it.
	Sites []mapHolderSite `json:"sites"`
}

// mapHolderSite is a call site of a line.
type mapHolderSite struct {
	Site   uint32 `json:"site"`
	Tensor string `json:"tensor,omitempty"` // "[1,8,4096,128] bfloat16 tile interleaved"
}

// mapLines knows which lines of a program hold its blocks.
type mapLines struct {
	place, tensor func(blocks.Block) string // nil: not known
	numbers       map[model.Pool]map[string]int
	frees         []blocks.ChipPool
}

func newMapLines(of *held) *mapLines {
	m := &mapLines{numbers: map[model.Pool]map[string]int{}, frees: of.Frees}
	m.place, m.tensor = bankmap.CallSites(of.Sites)
	if m.place == nil && m.tensor == nil {
		return m
	}
	if m.place == nil { // tensors without lines
		m.place = func(blocks.Block) string { return "" }
	}
	sums := map[model.Pool]map[string]uint64{}
	for _, x := range bankmap.Pools(of.Process) {
		if sums[x.Pool] == nil {
			sums[x.Pool] = map[string]uint64{}
		}
		for b := range x.All() {
			sums[x.Pool][m.place(b)] += b.Size * x.Banks * uint64(max(len(x.Of.Chips), 1))
		}
	}
	for pool, by := range sums {
		m.numbers[pool] = numbered(by)
	}
	return m
}

// numbered gives names their numbers, from 1, the largest first; "" has 0.
func numbered(sums map[string]uint64) map[string]int {
	out := map[string]int{}
	order := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	for _, name := range order {
		if name != "" {
			out[name] = len(out) + 1
		}
	}
	return out
}

// of are the holders of a list, of which some blocks are drawn.
func (m *mapLines) of(x bankmap.Pool, drawn [][5]uint64) []mapHolder {
	l := x.List
	out := []mapHolder{}
	if m.place == nil {
		return out
	}
	list, _ := bankmap.Holders(l, m.place)
	works := m.works(l.Pool, x.Of)
	at := map[string]int{}
	for _, h := range list {
		if len(out) < maxMapHolders {
			at[h.Name] = len(out)
			out = append(out, mapHolder{
				Number: m.numbers[l.Pool][h.Name], Line: h.Name, Bank: h.Bytes, Bytes: h.Bytes * l.Banks, Blocks: h.Blocks,
				Oldest: h.Oldest / 1e6, Grew: works && h.Steady, Sites: []mapHolderSite{},
			})
			continue
		}
		at[h.Name] = maxMapHolders
		out = addOther(out, h, l.Banks)
	}
	m.addSites(out, at, drawn)
	return out
}

// addOther adds a holder to the one that stands for all that are too many.
func addOther(out []mapHolder, h *bankmap.Holder, banks uint64) []mapHolder {
	if len(out) == maxMapHolders {
		out = append(out, mapHolder{Number: maxMapHolders + 1, Sites: []mapHolderSite{}})
	}
	x := &out[maxMapHolders]
	x.Others++
	x.Bank += h.Bytes
	x.Bytes += h.Bytes * banks
	x.Blocks += h.Blocks
	if born := h.Oldest / 1e6; born > 0 && (x.Oldest == 0 || born < x.Oldest) {
		x.Oldest = born
	}
	return out
}

// addSites notes whose the sites of the blocks are that are drawn.
func (m *mapLines) addSites(out []mapHolder, at map[string]int, drawn [][5]uint64) {
	seen := map[uint32]bool{}
	for _, d := range drawn {
		b := blocks.Block{Site: uint32(d[4])}
		if seen[b.Site] {
			continue
		}
		seen[b.Site] = true
		s := mapHolderSite{Site: b.Site}
		if m.tensor != nil {
			s.Tensor = m.tensor(b)
		}
		if i, ok := at[m.place(b)]; ok {
			out[i].Sites = append(out[i].Sites, s)
		}
	}
}

// works reports whether the process frees blocks of a pool at all, on a chip of an
// allocator; of one that only allocates growth says nothing.
func (m *mapLines) works(pool model.Pool, a *blocks.Allocator) bool {
	return slices.ContainsFunc(m.frees, func(x blocks.ChipPool) bool { return x.Pool == pool.String() && slices.Contains(a.Chips, x.Chip) })
}
