package blocks

import (
	"iter"
	"slices"
	"sort"
)

// index holds blocks that do not overlap, sorted by address, in runs of at
// most runLength. Compared with a map it needs less memory, and the holes
// between the blocks can be walked in order; compared with one sorted slice, a
// change moves one run and not everything behind it.
type index struct {
	runs [][]Block // none is empty
}

// A run of 64 blocks is 2.5 KiB: moving half of it costs less than finding it.
const runLength = 64

// find returns the run in which an address is or would be.
func (x *index) find(addr uint64) int {
	n := sort.Search(len(x.runs), func(i int) bool { return x.runs[i][0].Addr > addr })
	return max(n-1, 0)
}

// within returns the position in a run of the first block at or behind addr.
func within(run []Block, addr uint64) (int, bool) {
	return slices.BinarySearchFunc(run, addr, func(b Block, addr uint64) int {
		switch {
		case b.Addr < addr:
			return -1
		case b.Addr > addr:
			return 1
		}
		return 0
	})
}

func (x *index) at(addr uint64) (Block, bool) {
	if len(x.runs) == 0 {
		return Block{}, false
	}
	run := x.runs[x.find(addr)]
	if i, ok := within(run, addr); ok {
		return run[i], true
	}
	return Block{}, false
}

// overlapping returns a block that has a byte in [from, to).
func (x *index) overlapping(from, to uint64) (Block, bool) {
	if len(x.runs) == 0 {
		return Block{}, false
	}
	r := x.find(from)
	i, _ := within(x.runs[r], from)
	if i > 0 && x.runs[r][i-1].End() > from {
		return x.runs[r][i-1], true
	}
	if i == len(x.runs[r]) {
		if r, i = r+1, 0; r == len(x.runs) {
			return Block{}, false
		}
	}
	if b := x.runs[r][i]; b.Addr < to {
		return b, true
	}
	return Block{}, false
}

// insert adds a block that overlaps none.
func (x *index) insert(b Block) {
	if len(x.runs) == 0 {
		x.runs = append(x.runs, append(make([]Block, 0, runLength), b))
		return
	}
	r := x.find(b.Addr)
	i, _ := within(x.runs[r], b.Addr)
	if len(x.runs[r]) == runLength {
		// A run that is appended to is left full, so that blocks which come in
		// the order of their addresses fill their runs.
		at := runLength / 2
		if i == runLength {
			at = runLength
		}
		tail := append(make([]Block, 0, runLength), x.runs[r][at:]...)
		x.runs[r] = x.runs[r][:at]
		if i >= at {
			tail = slices.Insert(tail, i-at, b)
		} else {
			x.runs[r] = slices.Insert(x.runs[r], i, b)
		}
		x.runs = slices.Insert(x.runs, r+1, tail)
		return
	}
	x.runs[r] = slices.Insert(x.runs[r], i, b)
}

func (x *index) remove(addr uint64) (Block, bool) {
	if len(x.runs) == 0 {
		return Block{}, false
	}
	r := x.find(addr)
	i, ok := within(x.runs[r], addr)
	if !ok {
		return Block{}, false
	}
	b := x.runs[r][i]
	x.runs[r] = slices.Delete(x.runs[r], i, i+1)
	switch {
	case len(x.runs[r]) == 0:
		x.runs = slices.Delete(x.runs, r, r+1)
	case r > 0 && len(x.runs[r-1])+len(x.runs[r]) <= runLength*3/4:
		x.join(r - 1)
	case r+1 < len(x.runs) && len(x.runs[r])+len(x.runs[r+1]) <= runLength*3/4:
		x.join(r)
	}
	return b, true
}

// join appends run r+1 to run r.
func (x *index) join(r int) {
	x.runs[r] = append(x.runs[r], x.runs[r+1]...)
	x.runs = slices.Delete(x.runs, r+1, r+2)
}

func (x *index) all() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for _, run := range x.runs {
			for _, b := range run {
				if !yield(b) {
					return
				}
			}
		}
	}
}

func (x *index) clone() index {
	c := index{runs: make([][]Block, len(x.runs))}
	for i, run := range x.runs {
		c.runs[i] = append(make([]Block, 0, runLength), run...)
	}
	return c
}
