package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// overwriteMiddle overwrites the middle of a file.
func overwriteMiddle(t *testing.T, path string) {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := st.Size()
	if _, err := f.WriteAt([]byte("this was on another sector once"), n/2); err != nil {
		t.Fatal(err)
	}
}

// Damage inside a block costs that block at most: the store opens, takes
// samples, and answers with what is left, whatever file it hit.
func TestDamagedBlock(t *testing.T) {
	for _, name := range []string{"chunks/000001", "index", "meta.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var talk said
			s := open(t, options(dir, &talk))
			end := 65 * 60
			for i := 0; i < end; i += 15 {
				appendRow(s, t0.Add(time.Duration(i)*time.Second), float64(i))
			}
			if err := s.fine.db.Compact(background); err != nil {
				t.Fatal(err)
			}
			s.Close()
			blocks, err := filepath.Glob(filepath.Join(dir, "history", "fine", "*", "chunks"))
			if err != nil || len(blocks) < 2 {
				t.Fatalf("blocks %v, %v", blocks, err)
			}
			overwriteMiddle(t, filepath.Join(filepath.Dir(blocks[0]), name))
			s = open(t, options(dir, &talk))
			now := t0.Add(time.Duration(end) * time.Second)
			appendRow(s, now, 4711)
			got := read(t, s, power.Name, "0", t0, now)
			if len(got) == 0 || got[len(got)-1].V != 4711 {
				t.Fatalf("the present is not there: %d points; said %q", len(got), talk)
			}
			t.Logf("%d of %d points are left; said %q", len(got), end/15+1, talk)
			if len(got) < 100 {
				t.Errorf("only %d points are left of %d; said %q", len(got), end/15+1, talk)
			}
			if !talk.has("damaged") {
				t.Errorf("it is not said: %q", talk)
			}
		})
	}
}

// compacted is a store with a block for every 20 minutes, and rows since t0.
func compacted(t *testing.T, dir string, talk *said, minutes int) (s *Store, end time.Time) {
	t.Helper()
	s = open(t, options(dir, talk))
	for i := 0; i < minutes*60; i += 15 {
		end = t0.Add(time.Duration(i) * time.Second)
		appendRow(s, end, float64(i))
	}
	if err := s.fine.db.Compact(background); err != nil {
		t.Fatal(err)
	}
	return s, end
}

// readSeries reads a series, and returns what went wrong with it.
func readSeries(t *testing.T, s *Store, from, to time.Time) (n int, err error) {
	t.Helper()
	q, err := s.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return 0, err
	}
	defer q.Close()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, power.Name))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			n++
		}
		if it.Err() != nil {
			return n, it.Err()
		}
	}
	return n, set.Err()
}

// A block that is damaged while it is in use fails the question that comes to
// it. From then on its time is answered from the coarse database, and rows are
// taken as ever.
func TestBlockDamagedWhileInUse(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"another sector": overwriteMiddle,
		"no sector at all": func(t *testing.T, path string) { // a fault of memory
			t.Helper()
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var talk said
			s, end := compacted(t, dir, &talk, 65)
			whole, err := readSeries(t, s, t0, end)
			if err != nil {
				t.Fatal(err)
			}
			blocks := s.fine.db.Blocks()
			if len(blocks) < 2 {
				t.Fatalf("%d blocks", len(blocks))
			}
			bad := blocks[1] // not at an end: the hole is between others
			harm(t, filepath.Join(bad.Dir(), "chunks/000001"))
			if n, err := readSeries(t, s, t0, end); err == nil || !strings.Contains(err.Error(), "ask again") && !strings.Contains(err.Error(), "reading the history") {
				t.Errorf("%d points, error %v", n, err)
			}
			s.background.Wait()
			n, err := readSeries(t, s, t0, end)
			if err != nil || n != whole {
				t.Errorf("%d of %d points afterwards (every one is in the coarse database), error %v; said %q", n, whole, err, talk)
			}
			if !talk.has("part of the history is damaged") {
				t.Errorf("it is not said: %q", talk)
			}
			if _, err := os.Stat(filepath.Join(dir, "history", "fine.damaged-block")); err != nil {
				t.Error(err)
			}
			appendRow(s, end.Add(time.Second), 4711)
			if m, err := readSeries(t, s, t0, end.Add(time.Second)); err != nil || m != whole+1 {
				t.Errorf("%d points with one more, error %v", m, err)
			}
			s.Close()
			s = open(t, options(dir, &talk)) // and remembers the hole
			if m, err := readSeries(t, s, t0, end.Add(time.Second)); err != nil || m != whole+1 {
				t.Errorf("%d points after a restart, error %v", m, err)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	all := []span{{0, 100}}
	for _, tt := range []struct {
		out, want []span
	}{
		{nil, all},
		{[]span{{-50, -1}}, all},
		{[]span{{-50, 10}}, []span{{11, 100}}},
		{[]span{{20, 30}, {25, 40}}, []span{{0, 19}, {41, 100}}},
		{[]span{{20, 30}, {90, 200}}, []span{{0, 19}, {31, 89}}},
		{[]span{{-1, 101}}, nil},
	} {
		t.Run(fmt.Sprint(tt.out), func(t *testing.T) {
			if got := without(all, tt.out); !slices.Equal(got, tt.want) {
				t.Errorf("without %v: %v, want %v", tt.out, got, tt.want)
			}
		})
	}
}

// A block that the disk does not give when it is to be joined with others is
// set aside, as one that a question came to, and the others are joined without
// it. The daemon continues.
func TestBlockDamagedBeforeCompaction(t *testing.T) {
	hermetic.Long(t)
	var talk said
	s := open(t, options(t.TempDir(), &talk))
	s.fine.db.DisableCompactions() // of their own; the test says when
	s.coarse.db.DisableCompactions()
	at := t0
	rows := func(until time.Duration) {
		for ; at.Before(t0.Add(until)); at = at.Add(5 * time.Minute) {
			appendRow(s, at, float64(at.Unix()))
		}
	}
	// Blocks of two hours are joined when six are over, and the next has begun.
	rows(9 * time.Hour)
	if err := s.coarse.db.Compact(background); err != nil {
		t.Fatal(err)
	}
	blocks := s.coarse.db.Blocks()
	if len(blocks) < 3 || blocks[1].Meta().Compaction.Level != 1 {
		t.Fatalf("%d blocks, the second of level %d", len(blocks), blocks[1].Meta().Compaction.Level)
	}
	if err := os.Truncate(filepath.Join(blocks[1].Dir(), "chunks/000001"), 0); err != nil {
		t.Fatal(err)
	}
	rows(20 * time.Hour)
	if err := s.coarse.db.Compact(background); err == nil || !strings.Contains(err.Error(), "reading the history") {
		t.Fatalf("a block that cannot be read was joined with others: %v", err)
	}
	s.background.Wait()
	if !talk.has("part of the history is damaged") {
		t.Errorf("it is not said: %q", talk)
	}
	if err := s.coarse.db.Compact(background); err != nil {
		t.Errorf("without the damaged one: %v", err)
	}
	joined := slices.ContainsFunc(s.coarse.db.Blocks(), func(b *tsdb.Block) bool { return b.Meta().Compaction.Level > 1 })
	if !joined {
		t.Error("the others are not joined")
	}
	appendRow(s, at, 4711)
	if n, err := readSeries(t, s, t0, at); err != nil || n < 200 {
		t.Errorf("%d points are left, error %v", n, err)
	}
}

// The newest samples are in files as well, which are mapped, and in the
// write-ahead log. If the files cannot be read when they are to become a
// block, the log has all.
func TestNewestDamagedBeforeCompaction(t *testing.T) {
	var talk said
	dir := t.TempDir()
	s := open(t, options(dir, &talk))
	at, n := t0, 0
	rows := func(until time.Duration) {
		for ; at.Before(t0.Add(until)); at = at.Add(2 * time.Second) {
			appendRow(s, at, float64(n))
			n++
		}
	}
	rows(15 * time.Minute)
	s.fine.db.ForceHeadMMap()
	s.Close()
	s = open(t, options(dir, &talk)) // what was being written is whole now, and mapped
	s.fine.db.DisableCompactions()
	files, err := filepath.Glob(filepath.Join(s.fine.dir, "chunks_head", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 0); err != nil {
			t.Fatal(err)
		}
	}
	rows(45 * time.Minute)
	if err := s.fine.db.Compact(background); err == nil || !strings.Contains(err.Error(), "reading the history") {
		t.Fatalf("what cannot be read became a block: %v", err)
	}
	rows(46 * time.Minute)
	if !talk.has("reading its write-ahead log again") {
		t.Errorf("it is not said: %q", talk)
	}
	if err := s.fine.db.Compact(background); err != nil {
		t.Error(err)
	}
	if got := measured(read(t, s, power.Name, "0", t0, at)); len(got) != n || got[0].V != 0 || got[n-1].V != float64(n-1) {
		t.Errorf("%d of %d points are left; said %q", len(got), n, talk)
	}
	if len(s.fine.db.Blocks()) == 0 {
		t.Error("no block was made")
	}
}
