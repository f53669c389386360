package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// Operation is an operation whose programs took another time.
type Operation struct {
	Name     string  `json:"operation"`
	SecondsA float64 `json:"time_a_s"` // over all chips
	SecondsB float64 `json:"time_b_s"`
	CallsA   uint64  `json:"calls_a"`
	CallsB   uint64  `json:"calls_b"`
}

// Change is by how many seconds B took longer.
func (o *Operation) Change() float64 { return o.SecondsB - o.SecondsA }

// The difference from which on an operation is listed, and from which on it is worth
// saying first: of both, the share of A and the seconds.
var (
	listed   = threshold{0.01, 0.01}
	reported = threshold{0.05, 1}
)

func (t threshold) reached(o *Operation) bool {
	d := math.Abs(o.Change())
	return d >= t.amount && d >= t.share*o.SecondsA
}

// operations are the usual ones of a side. complete: one that is not among them took
// no time, rather than less than those; nil: none are known.
func (s *Side) operations() (used map[string]runs.Operation, complete bool) {
	var known []map[string]runs.Operation
	complete = true
	for i := range s.list {
		list := s.list[i].Operations()
		if len(list) == 0 {
			continue
		}
		complete = complete && s.list[i].AllOperations()
		of := map[string]runs.Operation{}
		for _, o := range list {
			of[o.Name] = o
		}
		known = append(known, of)
	}
	if 2*len(known) <= len(s.list) {
		return nil, false
	}
	return medianOperations(known), complete
}

func medianOperations(list []map[string]runs.Operation) map[string]runs.Operation {
	if len(list) == 1 {
		return list[0]
	}
	out := map[string]runs.Operation{}
	for _, of := range list {
		for name := range of {
			out[name] = runs.Operation{Name: name}
		}
	}
	for name, o := range out {
		all := make([]runs.Operation, len(list))
		for i, of := range list {
			all[i] = of[name]
		}
		slices.SortFunc(all, func(a, b runs.Operation) int { return cmp.Compare(a.Seconds, b.Seconds) })
		o = all[len(all)/2]
		o.Name = name
		out[name] = o
	}
	return out
}

// compareOperations finds the operations that took another time, the one that took
// most longer first.
func (c *Comparison) compareOperations() {
	a, allA := c.A.operations()
	b, allB := c.B.operations()
	if a == nil || b == nil {
		return
	}
	c.Operations = []Operation{}
	seen := map[string]bool{}
	for _, used := range []map[string]runs.Operation{a, b} {
		for name := range used {
			x, inA := a[name]
			y, inB := b[name]
			if seen[name] || !inA && !allA || !inB && !allB {
				continue
			}
			seen[name] = true
			o := Operation{name, x.Seconds, y.Seconds, x.Calls, y.Calls}
			if listed.reached(&o) {
				c.Operations = append(c.Operations, o)
			}
		}
	}
	slices.SortFunc(c.Operations, func(x, y Operation) int {
		return cmp.Or(cmp.Compare(y.Change(), x.Change()), cmp.Compare(x.Name, y.Name))
	})
}

// slowest is the operation that took most longer, where that is worth saying.
func (c *Comparison) slowest() *Operation {
	if len(c.Operations) == 0 {
		return nil
	}
	if o := &c.Operations[0]; o.Change() > 0 && reported.reached(o) {
		return o
	}
	return nil
}
