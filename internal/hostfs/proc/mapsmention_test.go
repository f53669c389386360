package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMapsMention(t *testing.T) {
	later := time.Now().Add(time.Minute)
	exe, err := Executable(rootFS, os.Getpid())
	if want, _ := os.Executable(); err != nil || exe != want {
		t.Fatalf("we run %q, %v; want %q", exe, err, want)
	}
	if found, err := MapsMention(rootFS, os.Getpid(), later, "no such thing", exe); !found || err != nil {
		t.Errorf("our own program: %v, %v", found, err)
	}
	if found, err := MapsMention(rootFS, os.Getpid(), later, "no such thing"); found || err != nil {
		t.Errorf("a name that is not mapped: %v, %v", found, err)
	}
	if _, err := MapsMention(rootFS, 1<<30, later, "x"); !noProcess(err) {
		t.Errorf("mappings of no process: %v", err)
	}
}

// A name is found wherever the pieces are cut, and reading an endless list
// stops.
func TestMention(t *testing.T) {
	pieces := func(text string, size int) func([]byte) (int, error) {
		r := strings.NewReader(text)
		return func(b []byte) (int, error) {
			n, _ := r.Read(b[:min(size, len(b))])
			return n, nil
		}
	}
	names := []string{"libtt_metal", "_ttnn"}
	text := strings.Repeat("7f00-7f01 r--p 0 0:0 0 /usr/lib/libc.so\n", 100) + "7f01-7f02 r-xp 0 0:0 5 /x/libtt_metal.so\n"
	later := time.Now().Add(time.Minute)
	for size := 1; size < 200; size++ {
		if found, err := containsName(pieces(text, size), later, names); !found || err != nil {
			t.Fatalf("in pieces of %d: %v, %v", size, found, err)
		}
	}
	if _, err := containsName(pieces("", 1), later, names); !errors.Is(err, ErrMapsUnread) {
		t.Errorf("an empty list: %v", err)
	}
	endless := func(b []byte) (int, error) { return copy(b, strings.Repeat("x", len(b))), nil }
	if _, err := containsName(endless, later, names); !errors.Is(err, ErrMapsUnread) {
		t.Errorf("an endless list: %v", err)
	}
	if _, err := containsName(pieces(text, 9), time.Now().Add(-time.Second), names); !errors.Is(err, ErrMapsUnread) {
		t.Errorf("no time: %v", err)
	}
}
