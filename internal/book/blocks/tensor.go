package blocks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tensor is what people ask tt-metal for.
type Tensor struct {
	Shape  []uint64
	Type   string // one of ElementTypes()
	Layout string // "tile" or "row_major"
	Shard  Shard
}

// Shard is the part of a sharded tensor that one core has, in elements. The zero
// value stands for a tensor that is interleaved.
type Shard struct{ Height, Width uint64 }

// Over is the shard of a tensor that is cut into rows and columns of shards, the
// last of which may have less.
func (t Tensor) Over(rows, columns uint64) (s Shard, err error) {
	height, width, ok := t.plane()
	if !ok || rows == 0 || columns == 0 {
		return s, fmt.Errorf("a tensor of shape %v cannot be cut into %d x %d shards", t.Shape, rows, columns)
	}
	s = Shard{ceil(height, rows), ceil(width, columns)}
	if t.Layout == "tile" {
		s = Shard{up(s.Height, tileSide), up(s.Width, tileSide)}
	}
	return s, nil
}

// plane is the tensor as a plane, as it is sharded: whole tiles where it has any.
func (t Tensor) plane() (height, width uint64, ok bool) {
	if len(t.Shape) == 0 {
		return 0, 0, false
	}
	height, width = 1, t.Shape[len(t.Shape)-1]
	if len(t.Shape) > 1 {
		height = t.Shape[len(t.Shape)-2]
	}
	if t.Layout == "tile" {
		height, width = up(height, tileSide), up(width, tileSide)
	}
	for _, n := range t.Shape[:max(len(t.Shape)-2, 0)] {
		if height, ok = times(height, n); !ok {
			return 0, 0, false
		}
	}
	return height, width, height < 1<<40 && width < 1<<40
}

// sharded is the request of a sharded tensor: a page is a tile, or a row of a
// shard.
func (t Tensor) sharded(e elementType) (r Request, err error) {
	height, width, ok := t.plane()
	s := t.Shard
	switch {
	case !ok:
		return r, fmt.Errorf("a tensor of shape %v is too large for any chip", t.Shape)
	case s.Height == 0 || s.Width == 0 || s.Height > height || s.Width > width:
		return r, fmt.Errorf("a shard of %d x %d is none of a tensor of %d x %d", s.Height, s.Width, height, width)
	case t.Layout == "tile" && (s.Height%tileSide != 0 || s.Width%tileSide != 0):
		return r, fmt.Errorf("a shard of tiles has sides of multiples of %d", tileSide)
	}
	r = Request{Page: s.Width * e.bytes, ShardPages: s.Height, Shards: product(ceil(height, s.Height), ceil(width, s.Width))}
	if t.Layout == "tile" {
		r.Page, r.ShardPages = e.tile, s.Height/tileSide*(s.Width/tileSide)
	}
	each, fits := times(r.Page, r.ShardPages)
	if r.Bytes, ok = times(each, r.Shards); !ok || !fits || r.Bytes > 1<<50 {
		return Request{}, fmt.Errorf("a tensor of shape %v is too large for any chip", t.Shape)
	}
	return r, nil
}

// elementType is how a type of tt-metal lies in memory.
type elementType struct {
	bytes uint64 // of an element in a row; 0: only in tiles
	tile  uint64 // of a tile of 32 x 32
}

var elementTypes = map[string]elementType{
	"bfloat16":  {2, 2048},
	"float32":   {4, 4096},
	"uint32":    {4, 4096},
	"int32":     {4, 4096},
	"uint16":    {2, 2048},
	"uint8":     {1, 1024},
	"bfloat8_b": {0, 1088}, // a byte each, and an exponent for every 16
	"bfloat4_b": {0, 576},
}

// ElementTypes are the types that Tensor knows.
func ElementTypes() []string { return slices.Sorted(maps.Keys(elementTypes)) }

const tileSide = 32

// Request is the buffer of a tensor. Of an interleaved one a page is a tile, or a
// row.
func (t Tensor) Request() (r Request, err error) {
	e, ok := elementTypes[t.Type]
	switch {
	case !ok:
		return r, fmt.Errorf("unknown data type %q: one of %s", t.Type, strings.Join(ElementTypes(), ", "))
	case len(t.Shape) == 0:
		return r, fmt.Errorf("a tensor has at least one dimension")
	case t.Layout != "tile" && t.Layout != "row_major":
		return r, fmt.Errorf("there is no layout %q; it is tile or row_major", t.Layout)
	case t.Layout == "row_major" && e.bytes == 0:
		return r, fmt.Errorf("%s exists in tiles only", t.Type)
	case t.Shard != Shard{}:
		return t.sharded(e)
	}
	height, width, others := uint64(1), t.Shape[len(t.Shape)-1], uint64(1)
	if len(t.Shape) > 1 {
		height = t.Shape[len(t.Shape)-2]
	}
	for _, n := range t.Shape[:max(len(t.Shape)-2, 0)] {
		if others, ok = times(others, n); !ok {
			return r, fmt.Errorf("a tensor of shape %v is too large for any chip", t.Shape)
		}
	}
	pages, page := others, uint64(0)
	if t.Layout == "tile" {
		var more bool
		pages, ok = times(others, ceil(height, tileSide))
		pages, more = times(pages, ceil(width, tileSide))
		ok, page = ok && more, e.tile
	} else {
		pages, ok = times(others, height)
		page = width * e.bytes
		ok = ok && width < 1<<40
	}
	bytes, fits := times(pages, page)
	if !ok || !fits || bytes > 1<<50 {
		return r, fmt.Errorf("a tensor of shape %v is too large for any chip", t.Shape)
	}
	return Request{Bytes: bytes, Page: page}, nil
}

// times multiplies; ok is false if the result does not fit.
func times(a, b uint64) (product uint64, ok bool) {
	product = a * b
	return product, a == 0 || product/a == b
}
