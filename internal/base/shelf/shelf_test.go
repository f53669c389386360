package shelf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// any file whose name is a number is of the shelf; of user 1.
func known(name string, read func() ([]byte, error)) (*Item[string], error) {
	x := &Item[string]{UID: 1}
	if _, err := fmt.Sscan(name, &x.Order); err != nil {
		return nil, nil
	}
	text, err := read()
	x.Value = string(text)
	return x, err
}

// What a program that was killed left, and what cannot be read, is removed; what is none
// of the shelf's stays.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"1": 5, "2": 500, "notes": 5, ".3.123": 5} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Limits{OfUser: 9, All: 9, OfUserBytes: 9999, AllBytes: 9999, File: 100}, known)
	if err == nil || len(s.Items) != 1 || s.Items[0].Name != "1" || s.Items[0].Bytes != 5 {
		t.Errorf("%+v, %v", s.Items, err)
	}
	for name, want := range map[string]bool{"1": true, "2": false, "notes": true, ".3.123": false} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Where the disk takes nothing memory has the newest, and no more than it may.
func TestHeld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := Open(filepath.Join(file, "below"), Limits{OfUser: 99, All: 99, OfUserBytes: 1 << 30, AllBytes: 1 << 30}, known)
	evicted := 0
	for i := range 10 {
		n, err := s.Put(&Item[string]{Name: fmt.Sprint(i), Order: int64(i)}, make([]byte, 2<<20))
		if err == nil {
			t.Fatal("a disk that takes nothing took a file")
		}
		evicted += n
	}
	if len(s.Items) != 4 || evicted != 6 || s.Items[0].Name != "6" {
		t.Errorf("%d are held, %d made room", len(s.Items), evicted)
	}
	if _, err := s.Get(s.Items[0]); errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
