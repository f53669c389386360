package rundiff

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the JSON.
const Schema = "ttmon.diff/1"

// Diff is how two sides differ.
type Diff struct {
	Schema string     `json:"schema"`
	A      *Side      `json:"a"`
	B      *Side      `json:"b"`
	Pools  []PoolDiff `json:"pools"`
	Users  []UserDiff `json:"users"`
	// Exact says that the blocks of both are known. Where they are not, nothing is
	// said about lines and blocks: what nobody told is not nothing.
	Exact  bool         `json:"exact"`
	Places []PlaceDiff  `json:"places"` // only those that differ; the one that grew most is first
	Blocks []BlockGroup `json:"blocks"` // held in B and not in A, largest first
}

// PoolDiff is a pool of a chip, or of a device where no program told its blocks.
type PoolDiff struct {
	Chip    string  `json:"chip"`
	Pool    string  `json:"pool"`
	PeakA   *uint64 `json:"peak_a_bytes"` // null: not known
	PeakB   *uint64 `json:"peak_b_bytes"`
	PeakAtA float64 `json:"peak_a_at_s"`
	PeakAtB float64 `json:"peak_b_at_s"`
	HeldA   *uint64 `json:"held_a_bytes"`
	HeldB   *uint64 `json:"held_b_bytes"`
	Unsure  bool    `json:"unsure"` // a figure of it was not exact
}

// UserDiff is what programs of a name held of DRAM, by the snapshots.
type UserDiff struct {
	Name  string  `json:"name"`
	HeldA *uint64 `json:"held_a_bytes"` // null: not known
	HeldB *uint64 `json:"held_b_bytes"`
	// BoundA and BoundB say how the figures are to be read: exact, at_least or
	// unsure; empty where there is none.
	BoundA string `json:"bound_a,omitempty"`
	BoundB string `json:"bound_b,omitempty"`
	// A and B are the figures themselves. Who is not there holds exactly nothing.
	A model.Bytes `json:"-"`
	B model.Bytes `json:"-"`
}

func newUserDiff(name string, a, b *Side) UserDiff {
	u := UserDiff{Name: name}
	u.A, u.HeldA, u.BoundA = a.user(name)
	u.B, u.HeldB, u.BoundB = b.user(name)
	return u
}

// user is what the programs of a name held. Who is not in the snapshot holds
// exactly nothing; without a snapshot nothing is known.
func (s *Side) user(name string) (x model.Bytes, held *uint64, bound string) {
	switch sum := s.users[name]; {
	case sum != nil:
		x = sum.Bytes()
	case s.seen:
		x = model.ExactBytes(0)
	}
	if n, is, known := x.Best(); known {
		held, bound = &n, is.String()
	}
	return x, held, bound
}

// PlaceDiff is what a line of code holds and has allocated, over all chips.
type PlaceDiff struct {
	Place
	HeldA   uint64 `json:"held_a_bytes"`
	HeldB   uint64 `json:"held_b_bytes"`
	TotalA  uint64 `json:"total_a_bytes"`
	TotalB  uint64 `json:"total_b_bytes"`
	AllocsA uint64 `json:"allocations_a"`
	AllocsB uint64 `json:"allocations_b"`
}

// grown is by how much more B holds, negative if it holds less; by what was
// allocated where they hold the same.
func (p *PlaceDiff) grown() int64 {
	return cmp.Or(int64(p.HeldB)-int64(p.HeldA), int64(p.TotalB)-int64(p.TotalA))
}

// BlockGroup is blocks of one place and size.
type BlockGroup struct {
	Place
	Bytes uint64 `json:"bytes"` // of each, on one chip
	Count int    `json:"count"`
}

// Compare compares two sides.
func Compare(a, b *Side) *Diff {
	d := &Diff{Schema: Schema, A: a, B: b, Pools: []PoolDiff{}, Users: []UserDiff{}, Places: []PlaceDiff{}, Blocks: []BlockGroup{}}
	// Of one recording what was not told up to a moment was not there yet.
	d.Exact = a.Exact && b.Exact || a.same && b.same && (a.Exact || b.Exact)
	d.comparePools()
	for _, name := range keys(a.users, b.users, cmp.Compare[string]) {
		d.Users = append(d.Users, newUserDiff(name, a, b))
	}
	if d.Exact {
		d.comparePlaces()
		d.newBlocks()
	}
	return d
}

func (d *Diff) comparePools() {
	left, right := d.pools(d.A), d.pools(d.B)
	for _, k := range keys(left, right, func(x, y poolKey) int {
		return cmp.Or(cmp.Compare(len(x.Chip), len(y.Chip)), cmp.Compare(x.Chip, y.Chip), cmp.Compare(x.Pool, y.Pool))
	}) {
		x, y := left[k], right[k]
		if d.Exact && x == nil {
			x = &pool{}
		}
		if d.Exact && y == nil {
			y = &pool{}
		}
		p := PoolDiff{Chip: k.Chip, Pool: k.Pool}
		if x != nil {
			p.PeakA, p.PeakAtA, p.HeldA, p.Unsure = &x.peak, x.peakAt, &x.now, x.doubtful
		}
		if y != nil {
			p.PeakB, p.PeakAtB, p.HeldB, p.Unsure = &y.peak, y.peakAt, &y.now, p.Unsure || y.doubtful
		}
		d.Pools = append(d.Pools, p)
	}
}

// pools are those of a side: by chip where blocks are compared, and not what
// snapshots say of devices.
func (d *Diff) pools(s *Side) map[poolKey]*pool {
	if d.Exact && !s.Exact {
		return nil
	}
	return s.pools
}

func (d *Diff) comparePlaces() {
	for _, k := range keys(d.A.places, d.B.places, comparePlaces) {
		x, y := d.A.places[k], d.B.places[k]
		if x == nil {
			x = &amounts{}
		}
		if y == nil {
			y = &amounts{}
		}
		if *x != *y {
			d.Places = append(d.Places, PlaceDiff{k, x.held, y.held, x.total, y.total, x.allocs, y.allocs})
		}
	}
	slices.SortStableFunc(d.Places, func(x, y PlaceDiff) int { return cmp.Compare(y.grown(), x.grown()) })
}

func comparePlaces(x, y Place) int {
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Pool, y.Pool), cmp.Compare(x.Function, y.Function))
}

func (d *Diff) newBlocks() {
	type group struct {
		Place
		bytes uint64
	}
	groups := map[group]int{}
	for k, n := range d.B.blocks {
		if more := n - d.A.blocks[k]; more > 0 {
			groups[group{k.Place, k.bytes}] += more
		}
	}
	for k, n := range groups {
		d.Blocks = append(d.Blocks, BlockGroup{k.Place, k.bytes, n})
	}
	slices.SortFunc(d.Blocks, func(x, y BlockGroup) int {
		return cmp.Or(cmp.Compare(y.Bytes*uint64(y.Count), x.Bytes*uint64(x.Count)), cmp.Compare(y.Bytes, x.Bytes), comparePlaces(x.Place, y.Place))
	})
}
