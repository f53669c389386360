package model

import (
	"encoding/json"
	"fmt"
)

// Bound says on which side of a number the truth may be.
type Bound uint8

// The bounds, from the best to the worst.
const (
	Exact   Bound = iota // the number is the truth
	AtLeast              // a process or a part is not in it
	Unsure               // it may be too high or too low
)

var boundWords = [...]string{Exact: "exact", AtLeast: "at_least", Unsure: "unsure"}

func (b Bound) String() string {
	if int(b) < len(boundWords) {
		return boundWords[b]
	}
	return fmt.Sprintf("bound(%d)", uint8(b))
}

// MarshalText is the word, for JSON.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (b *Bound) UnmarshalText(word []byte) error {
	*b = ParseBound(string(word))
	return nil
}

// ParseBound is the inverse of String. A word that is not known is the worst.
func ParseBound(word string) Bound {
	for i, w := range boundWords {
		if w == word {
			return Bound(i)
		}
	}
	return Unsure
}

// Bytes is a number of bytes that knows how far it can be trusted, or that
// there is none. The accompanying Doubts explain why. The number cannot be read
// without asking for its bound: words is the only way from here to text,
// and prints the mark. The zero Bytes is missing.
type Bytes struct {
	n      uint64
	bound  Bound
	status Status
}

// ExactBytes is a number that is the truth.
func ExactBytes(n uint64) Bytes { return Bytes{n: n, status: Known} }

// BoundBytes is a number with a bound. "At least 0" says nothing: it is missing.
func BoundBytes(n uint64, b Bound) Bytes {
	if n == 0 && b == AtLeast {
		return Bytes{}
	}
	return Bytes{n: n, bound: b, status: Known}
}

// NoBytes is a figure that is missing.
func NoBytes(s Status) Bytes {
	if s == Known {
		panic("BUG: a missing figure cannot be known")
	}
	return Bytes{status: s}
}

// Best is the best number there is, its bound, and whether there is one.
func (b Bytes) Best() (n uint64, bound Bound, known bool) {
	return b.n, b.bound, b.status == Known
}

// Known reports whether there is a number.
func (b Bytes) Known() bool { return b.status == Known }

// Positive reports whether it is known that there is something.
func (b Bytes) Positive() bool { return b.status == Known && b.n > 0 }

// Exactly reports whether b is the truth, and that it is n.
func (b Bytes) Exactly(n uint64) bool { return b == ExactBytes(n) }

// Status is Known, or the reason why there is no number.
func (b Bytes) Status() Status { return b.status }

// Doubted is b with a bound that is no better than the given one.
func (b Bytes) Doubted(bound Bound) Bytes {
	if b.status != Known {
		return b
	}
	return BoundBytes(b.n, max(b.bound, bound))
}

// Sum adds up figures together with their doubts: exact and exact is exact;
// something missing makes it at least; something unsure makes it unsure;
// nothing but missing is missing, and so is "at least 0". The zero Sum is
// empty.
type Sum struct {
	n       uint64
	bound   Bound
	known   bool
	missing bool
	status  Status // of the first missing part that says more than Absent
}

// Add adds a figure.
func (s *Sum) Add(b Bytes) {
	if b.status != Known {
		if !s.missing || s.status == Absent {
			s.status = b.status
		}
		s.missing = true
		return
	}
	s.n, s.bound, s.known = s.n+b.n, max(s.bound, b.bound), true
}

// Overlap adds a figure that takes the same room as those added before: the
// largest of them counts.
func (s *Sum) Overlap(b Bytes) {
	if b.status == Known && s.known {
		n := max(s.n, b.n)
		s.Add(b)
		s.n = n
		return
	}
	s.Add(b)
}

// Miss notes that something which is not known belongs to the sum.
func (s *Sum) Miss(why Status) { s.Add(NoBytes(why)) }

// Doubt makes the sum no better than a bound.
func (s *Sum) Doubt(b Bound) { s.bound = max(s.bound, b) }

// Incomplete reports whether something that is not known belongs to the sum.
func (s *Sum) Incomplete() bool { return s.missing }

// Empty reports whether nothing was added.
func (s *Sum) Empty() bool { return !s.known && !s.missing }

// Bytes is the sum so far. A sum of nothing is missing.
func (s *Sum) Bytes() Bytes {
	if !s.known {
		return Bytes{status: s.status}
	}
	bound := s.bound
	if s.missing {
		bound = max(bound, AtLeast)
	}
	if s.n == 0 && bound == AtLeast {
		return Bytes{status: s.status}
	}
	return Bytes{n: s.n, bound: bound, status: Known}
}

// AddUp is the sum of a list.
func AddUp(list ...Bytes) Bytes {
	var s Sum
	for _, b := range list {
		s.Add(b)
	}
	return s.Bytes()
}

// Equal reports whether two figures say the same. The package that tests compare
// with asks for it: it does not look into fields that are not exported.
func (b Bytes) Equal(c Bytes) bool { return b == c }

// bytesState is how a figure travels between our own processes. What users
// read is made by wire and words.
type bytesState struct {
	N      uint64 `json:"n"`
	Bound  Bound  `json:"bound"`
	Status Status `json:"status"`
}

// MarshalJSON writes b for another process of ours.
func (b Bytes) MarshalJSON() ([]byte, error) {
	return json.Marshal(bytesState{b.n, b.bound, b.status})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var s bytesState
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*b = Bytes{s.N, s.Bound, s.Status}
	return nil
}
