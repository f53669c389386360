package past

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var t0 = time.Unix(1_800_000_000, 0)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *Store) fill(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i < to; i += 10 {
		if err := s.Put(t0.Add(time.Duration(i)*time.Second), fmt.Appendf(nil, "snapshot %d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *Store) want(t *testing.T, second int, want string) {
	t.Helper()
	_, body, err := s.At(t0.Add(time.Duration(second) * time.Second))
	if want == "" && !errors.Is(err, ErrNone) || want != "" && (err != nil || string(body) != want) {
		t.Errorf("at %d s: %q, %v, want %q", second, body, err, want)
	}
}

func TestAt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.want(t, 0, "")
	s.fill(t, 0, 8000)
	s.want(t, -1, "")
	s.want(t, 0, "snapshot 0")
	s.want(t, 19, "snapshot 10")
	s.want(t, 7999, "snapshot 7990")
	s.want(t, 99999, "snapshot 7990")
	again := open(t, dir) // the first was killed
	again.want(t, 4567, "snapshot 4560")
	again.fill(t, 8000, 8100)
	again.want(t, 8005, "snapshot 8000")
	if a, b := again.Span(); !a.Equal(t0) || !b.Equal(t0.Add(8090*time.Second)) {
		t.Errorf("span %v %v", a, b)
	}
}

func TestKeepsADay(t *testing.T) {
	s := open(t, t.TempDir())
	s.fill(t, 0, 2*86400)
	if a, _ := s.Span(); a.Before(t0.Add(23*time.Hour)) || a.After(t0.Add(25*time.Hour)) {
		t.Errorf("the oldest is of %v", a.Sub(t0))
	}
	s.want(t, 3600, "")
}

// A torn end and a damaged record cost themselves only.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.fill(t, 0, 100)
	path := s.files[0].path
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[s.files[0].records[5].offset+3] ^= 0xff
	if err := os.WriteFile(path, b[:len(b)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	s.want(t, 95, "snapshot 80")
	s.want(t, 55, "snapshot 40")
	s.want(t, 65, "snapshot 60")
	s.fill(t, 100, 120)
	s.want(t, 105, "snapshot 100")
}

// Starts do not add up: neither files nor descriptors.
func TestManyStarts(t *testing.T) {
	dir := t.TempDir()
	const starts = 300
	for i := range starts {
		s, err := Open(Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		s.fill(t, 10*i, 10*i+10)
		if i < starts-1 {
			s.Close()
			continue
		}
		t.Cleanup(s.Close)
		for k := range starts {
			s.want(t, 10*k+5, fmt.Sprintf("snapshot %d", 10*k))
		}
		open := 0
		for _, x := range s.files {
			if x.f != nil {
				open++
			}
		}
		if len(s.files) != 1 || open != 1 {
			t.Errorf("%d files, %d of them open, after %d starts within an hour", len(s.files), open, starts)
		}
	}
}

// Only the file that is appended to is open, however long it goes.
func TestOneDescriptor(t *testing.T) {
	s := open(t, t.TempDir())
	s.fill(t, 0, 5*3600)
	for i, x := range s.files {
		if last := i == len(s.files)-1; (x.f != nil) != last {
			t.Errorf("file %d of %d is open: %v", i, len(s.files), x.f != nil)
		}
	}
	s.want(t, 5, "snapshot 0")
	s.want(t, 4*3600+5, fmt.Sprintf("snapshot %d", 4*3600))
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(file, "past"))
	if s.Put(t0, []byte("x")) == nil {
		t.Error("a snapshot below a file")
	}
	s.want(t, 0, "")
}

func FuzzScan(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	_ = s.Put(t0, []byte("a snapshot"))
	b, _ := os.ReadFile(s.files[0].path)
	s.Close()
	f.Add(b)
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "1"+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, _, _ = s.At(t0)
		if err := s.Put(t0, []byte("x")); err != nil {
			t.Fatal(err)
		}
	})
}
