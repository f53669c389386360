// Package shelf keeps files that the programs of users cause, such as failed
// allocations: bounded by user and in all, in a directory, or in memory while the disk
// does not take them.
//
// It stands below what keeps them; those say what is in a file, and whose it is.
package shelf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/replace"
)

// Limits bound what is kept.
type Limits struct {
	OfUser, All           int   // files
	OfUserBytes, AllBytes int64 // of them
	File                  int64 // bytes of one
}

// Item is a file that is kept.
type Item[V any] struct {
	Name  string
	Order int64 // the lowest is the oldest
	UID   int   // of the user who caused it
	Bytes int64
	Value V // what its keeper knows of it

	held []byte // where the disk did not take it
}

// Shelf keeps files. It is not safe for concurrent use.
type Shelf[V any] struct {
	Items []*Item[V] // the oldest first

	dir    string
	limits Limits
}

// Open returns the shelf in a directory, which is made when something is to be kept.
// known says what a file is; nil: it is none of the shelf's. One that cannot be read is
// an error, and is removed.
func Open[V any](dir string, limits Limits, known func(name string, read func() ([]byte, error)) (*Item[V], error)) (*Shelf[V], error) {
	s := &Shelf[V]{dir: dir, limits: limits}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if strings.HasPrefix(f.Name(), ".") { // of a program that was killed while it wrote
			_ = os.Remove(path)
			continue
		}
		info, bad := f.Info()
		if bad != nil || !info.Mode().IsRegular() {
			continue
		}
		x, bad := known(f.Name(), func() ([]byte, error) {
			if info.Size() > limits.File {
				return nil, errors.New("it is too large")
			}
			return os.ReadFile(path)
		})
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("removing %s, which cannot be read: %w", path, bad))
			_ = os.Remove(path)
		} else if x != nil {
			x.Name, x.Bytes = f.Name(), info.Size()
			s.Items = append(s.Items, x)
		}
	}
	s.sort()
	s.evict()
	return s, err
}

func (s *Shelf[V]) sort() {
	slices.SortStableFunc(s.Items, func(a, b *Item[V]) int { return cmp.Compare(a.Order, b.Order) })
}

// Put keeps a file, in the place of the item's last one. It returns how many made room
// for it. An error is the disk's: the file is in memory.
func (s *Shelf[V]) Put(x *Item[V], text []byte) (evicted int, err error) {
	x.Bytes, x.held = int64(len(text)), nil
	if err = os.MkdirAll(s.dir, 0o700); err == nil {
		err = replace.File(s.path(x), text, 0o600)
	}
	if err != nil {
		x.held = text
	}
	if !slices.Contains(s.Items, x) {
		s.Items = append(s.Items, x)
		s.sort()
	}
	return s.evict(), err
}

// Get reads a file.
func (s *Shelf[V]) Get(x *Item[V]) ([]byte, error) {
	if x.held != nil {
		return x.held, nil
	}
	return os.ReadFile(s.path(x))
}

// Remove removes a file. One that stays is found again by Open.
func (s *Shelf[V]) Remove(x *Item[V]) {
	_ = os.Remove(s.path(x))
	s.Items = slices.DeleteFunc(s.Items, func(y *Item[V]) bool { return x == y })
}

func (s *Shelf[V]) path(x *Item[V]) string { return filepath.Join(s.dir, x.Name) }

// maxHeld is how much memory has at most of what the disk does not take.
const maxHeld = 8 << 20

// sum is what some files take.
type sum struct {
	files       int
	bytes, held int64
}

func (s *sum) exceeds(files int, bytes int64) bool {
	return s.files > files || s.bytes > bytes && s.files > 1
}

// evict removes the oldest files while there are too many: of a user that has too many,
// then of the user that has most; and those that only memory has.
func (s *Shelf[V]) evict() (n int) {
	for ; ; n++ {
		var all sum
		users := map[int]sum{}
		for _, x := range s.Items {
			u := users[x.UID]
			for _, sum := range []*sum{&u, &all} {
				sum.files, sum.bytes, sum.held = sum.files+1, sum.bytes+x.Bytes, sum.held+int64(len(x.held))
			}
			users[x.UID] = u
		}
		most, tooMuch := 0, all.exceeds(s.limits.All, s.limits.AllBytes)
		for uid, u := range users {
			if u.exceeds(s.limits.OfUser, s.limits.OfUserBytes) {
				most, tooMuch = uid, true
				break
			}
			if u.bytes >= users[most].bytes {
				most = uid
			}
		}
		onlyHeld := !tooMuch && all.held > maxHeld && all.files > 1
		i := slices.IndexFunc(s.Items, func(x *Item[V]) bool { return tooMuch && x.UID == most || onlyHeld && x.held != nil })
		if i < 0 {
			return n
		}
		s.Remove(s.Items[i])
	}
}
