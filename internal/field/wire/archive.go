package wire

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// archive walks over a snapshot field by field: the encoder
// writes what it finds, the decoder fills it in, and the test that makes the
// schema notes what is there.
//
// A member is announced by key, null or reading, which report whether its
// value is to be visited now; then one of the value methods, begin or list
// visits it. Walkers that only read the model never write to it: a published
// snapshot is immutable.
type archive interface {
	key(key string) bool
	null(key string, is bool) bool // a member that may be null: answers whether it is
	reading(key string, r status, quiet bool) bool
	maybe(key string, is bool) bool              // a member that is only there where it says something
	figure(key, boundKey string, b *model.Bytes) // two members: the best number, and its bound

	begin() // an object
	close()
	list(n int) int // a list of n items; answers how many to visit
	item()          // the next item, visited as after key
	endList()

	// A scope is an object with "missing" and "nominal" of its own.
	scope()
	endScope()

	value(v any) // a pointer to a number, a string, a bool, a time, a decimal, a hex or a Bound
	reads() bool // it fills the model in
}

// status is the part of a Reading that does not depend on its type.
type status struct {
	s       *model.Status
	nominal *bool
	why     *string
}

func statusOf[T any](r *model.Reading[T]) status { return status{&r.Status, &r.Nominal, &r.Why} }

type (
	decimal uint64 // a number too big for JavaScript: as a string
	hex     uint16 // a PCI id: "0x1e52"
)

// value visits an item of a list.
func value[T any](a archive, v *T) { a.value(v) }

// field is a member that always has a value.
func field[T any](a archive, key string, v *T) {
	if a.key(key) {
		a.value(v)
	}
}

// object is a member with members of its own.
func object[T any](a archive, key string, v *T, each func(archive, *T)) {
	if a.key(key) {
		a.begin()
		each(a, v)
		a.close()
	}
}

// optional is a field whose zero value means that there is nothing: null.
func optional[T comparable](a archive, key string, v *T) {
	var zero T
	if !a.null(key, *v == zero) {
		a.value(v)
	}
}

// instant is a time; the zero time is null.
func instant(a archive, key string, t *time.Time) {
	if !a.null(key, t.IsZero()) {
		a.value(t)
	}
}

// reading is a member that may be missing.
func reading[T any](a archive, key string, r *model.Reading[T]) {
	if a.reading(key, statusOf(r), false) {
		a.value(&r.V)
	}
}

// size is a reading of a memory that needs no entry in "missing" when it is
// absent and there is nothing more to say about it.
func size(a archive, key string, r *model.Reading[uint64]) {
	if a.reading(key, statusOf(r), true) {
		a.value(&r.V)
	}
}

// rareSize is a size that hardly anybody has: no member at all when it is absent.
func rareSize(a archive, key string, r *model.Reading[uint64]) {
	if a.reads() || *r != (model.Reading[uint64]{}) {
		size(a, key, r)
	}
}

// rareReading is rareSize for another reading.
func rareReading[T comparable](a archive, key string, r *model.Reading[T]) {
	if a.reads() || *r != (model.Reading[T]{}) {
		if a.reading(key, statusOf(r), true) {
			a.value(&r.V)
		}
	}
}

// rareFigure is rareSize for a figure.
func rareFigure(a archive, key, boundKey string, b *model.Bytes) {
	if a.reads() || *b != (model.Bytes{}) {
		a.figure(key, boundKey, b)
	}
}

// rare is a field that is there only where it is not the zero value.
func rare[T comparable](a archive, key string, v *T) {
	var zero T
	if a.maybe(key, *v != zero) {
		a.value(v)
	}
}

// rareNumbers is a list of numbers that is there only where it is not empty.
func rareNumbers(a archive, key string, list *[]int) {
	if a.maybe(key, len(*list) > 0) {
		elements(a, list, value[int])
	}
}

// elements visits a list. An empty one is [] in JSON and nil in the model.
func elements[T any](a archive, list *[]T, each func(archive, *T)) {
	n := a.list(len(*list))
	if a.reads() && n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		a.item()
		each(a, &(*list)[i])
	}
	a.endList()
}

// items is a list of objects.
func items[T any](a archive, key string, list *[]T, each func(archive, *T)) {
	if a.key(key) {
		elements(a, list, func(a archive, v *T) {
			a.begin()
			each(a, v)
			a.close()
		})
	}
}

// strings is a list of strings.
func strings(a archive, key string, list *[]string) {
	if a.key(key) {
		elements(a, list, value[string])
	}
}
