package disk

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
				put(s, t0.Add(time.Duration(i)*time.Second), float64(i))
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
			put(s, now, 4711)
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
