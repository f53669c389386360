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

	float(*float64)
	int(*int)
	uint64(*uint64)
	uint32(*uint32)
	string(*string)
	bool(*bool)
	decimal(*uint64) // a number too big for JavaScript: as a string
	hex(*uint16)     // a PCI id: "0x1e52"
	time(*time.Time)
	reads() bool // it fills the model in
}

// status is the part of a Reading that does not depend on its type.
type status struct {
	s       *model.Status
	nominal *bool
	why     *string
}

func statusOf[T any](r *model.Reading[T]) status { return status{&r.Status, &r.Nominal, &r.Why} }

// value is what a field can hold.
type value interface {
	float64 | int | uint64 | uint32 | string | bool
}

func visit[T value](a archive, v *T) {
	switch v := any(v).(type) {
	case *float64:
		a.float(v)
	case *int:
		a.int(v)
	case *uint64:
		a.uint64(v)
	case *uint32:
		a.uint32(v)
	case *string:
		a.string(v)
	case *bool:
		a.bool(v)
	}
}

// field is a member that always has a value.
func field[T value](a archive, key string, v *T) {
	if a.key(key) {
		visit(a, v)
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
func optional[T value](a archive, key string, v *T) {
	var zero T
	if !a.null(key, *v == zero) {
		visit(a, v)
	}
}

// instant is a time; the zero time is null.
func instant(a archive, key string, t *time.Time) {
	if !a.null(key, t.IsZero()) {
		a.time(t)
	}
}

// reading is a member that may be missing.
func reading[T value](a archive, key string, r *model.Reading[T]) {
	if a.reading(key, statusOf(r), false) {
		visit(a, &r.V)
	}
}

// size is a reading of a memory that needs no entry in "missing" when it is
// absent and there is nothing more to say about it.
func size(a archive, key string, r *model.Reading[uint64]) {
	if a.reading(key, statusOf(r), true) {
		a.uint64(&r.V)
	}
}

// rareSize is a size that hardly anybody has: no member at all when it is absent.
func rareSize(a archive, key string, r *model.Reading[uint64]) {
	if a.reads() || *r != (model.Reading[uint64]{}) {
		size(a, key, r)
	}
}

// rareReading is rareSize for another reading.
func rareReading[T value](a archive, key string, r *model.Reading[T]) {
	if a.reads() || *r != (model.Reading[T]{}) {
		if a.reading(key, statusOf(r), true) {
			visit(a, &r.V)
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
func rare[T value](a archive, key string, v *T) {
	var zero T
	if a.maybe(key, *v != zero) {
		visit(a, v)
	}
}

// rareNumbers is a list of numbers that is there only where it is not empty.
func rareNumbers(a archive, key string, list *[]int) {
	if a.maybe(key, len(*list) > 0) {
		elements(a, list, archive.int)
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
		elements(a, list, archive.string)
	}
}
