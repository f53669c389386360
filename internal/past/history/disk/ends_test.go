package disk

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rows appends a row a second.
func rows(s *Store, from, to int, watts ...float64) {
	for i := from; i < to; i++ {
		appendRow(s, t0.Add(time.Duration(i)*time.Second), watts...)
	}
}

// tail is what one database has of device 0 from a second on.
func tail(t *testing.T, db *database, name string, from int) []point {
	t.Helper()
	return read(t, &Store{memory: db}, name, "0", t0.Add(time.Duration(from)*time.Second), t0.Add(time.Hour))
}

// A sample ends where nothing follows it, in both databases, for families that
// change and for those that hardly do.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, dir string, o Options) *Store
		// The last points from second 40 on; -1 is an end.
		fine, coarse, limit []point
	}{
		{
			"a stop", func(t *testing.T, _ string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				s.Close()
				return open(t, o)
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {42.001, -1}},
			[]point{{42.001, -1}},
			[]point{{42.001, -1}},
		},
		{
			"a crash", func(t *testing.T, dir string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				if err := os.CopyFS(filepath.Join(dir, "after"), os.DirFS(o.Dir)); err != nil {
					t.Fatal(err)
				}
				o.Dir = filepath.Join(dir, "after")
				return open(t, o)
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {42.001, -1}},
			[]point{{42.001, -1}},
			[]point{{42.001, -1}},
		},
		{
			"a crash and a start", func(t *testing.T, dir string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				if err := os.CopyFS(filepath.Join(dir, "after"), os.DirFS(o.Dir)); err != nil {
					t.Fatal(err)
				}
				o.Dir = filepath.Join(dir, "after")
				s = open(t, o)
				rows(s, 50, 52, 8)
				return s
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {42.001, -1}, {50, 8}, {51, 8}},
			[]point{{42.001, -1}, {50, 8}},
			[]point{{42.001, -1}, {50, 300}},
		},
		{
			"twenty seconds without a row", func(t *testing.T, _ string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				rows(s, 63, 65, 8)
				return s
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {42.001, -1}, {63, 8}, {64, 8}},
			[]point{{42.001, -1}, {63, 8}},
			[]point{{42.001, -1}, {63, 300}},
		},
		{
			"a device that goes between two rows of the coarse database", func(t *testing.T, _ string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				rows(s, 43, 61)
				return s
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {43, -1}},
			[]point{{45, -1}},
			[]point{{43, -1}},
		},
		{
			"one that comes back before the coarse database has seen its end", func(t *testing.T, _ string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 41, 7)
				rows(s, 41, 42)
				rows(s, 42, 46, 7)
				return s
			},
			[]point{{40, 7}, {41, -1}, {42, 7}, {43, 7}, {44, 7}, {45, 7}},
			[]point{{45, 7}},
			[]point{{41, -1}, {42, 300}, {45, 300}},
		},
		{
			"rows that are late", func(t *testing.T, _ string, o Options) *Store {
				s := open(t, o)
				rows(s, 0, 43, 7)
				rows(s, 46, 47, 7)
				return s
			},
			[]point{{40, 7}, {41, 7}, {42, 7}, {46, 7}},
			[]point{{46, 7}},
			[]point{{46, 300}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var talk said
			dir := t.TempDir()
			s := c.run(t, dir, options(dir, &talk))
			if diff := cmp.Diff(c.fine, tail(t, s.fine, power.Name, 40)); diff != "" {
				t.Errorf("fine: %s", diff)
			}
			if diff := cmp.Diff(c.coarse, tail(t, s.coarse, power.Name, 40)); diff != "" {
				t.Errorf("coarse: %s", diff)
			}
			if diff := cmp.Diff(c.limit, tail(t, s.fine, limit.Name, 40)); diff != "" {
				t.Errorf("what hardly changes: %s", diff)
			}
		})
	}
}
