package recording

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// written is a recording of some seconds as it lies on the disk, and the truth
// of each of its moments.
func written(t *testing.T, seed uint64, seconds float64) ([]byte, *randomRecording) {
	t.Helper()
	w, path := create(t)
	s := newRandomRecording(t, w, seed)
	for s.now < seconds {
		s.step(t)
	}
	ok(t, w.Close())
	whole, err := os.ReadFile(path)
	ok(t, err)
	return whole, s
}

func readerOf(b []byte) (*Reader, error) {
	return NewReader(bytes.NewReader(b), func() (int64, error) { return int64(len(b)), nil })
}

// until is what held at a time.
func (s *randomRecording) until(t time.Time) (x truth) {
	for _, step := range s.steps {
		if !step.at.After(t) {
			x = step.truth
		}
	}
	return x
}

// Wherever a writer was killed, or the disk was full, the file opens up to the
// last whole block and is right up to there: it is cut at every byte, those of key
// blocks too.
func TestCutAnywhere(t *testing.T) {
	whole, s := written(t, 2, 25)
	r, err := readerOf(whole)
	ok(t, err)
	all := r.blocks
	if keys := slices.IndexFunc(all[1:], func(b block) bool { return b.key }); keys < 0 {
		t.Fatal("there is one key block only")
	}
	seen := -1
	for n := range len(whole) + 1 {
		r, err := readerOf(whole[:n])
		if n < fileHeader {
			if !errors.Is(err, ErrForeign) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		ok(t, err)
		fit, end := 0, int64(fileHeader)
		for fit < len(all) && all[fit].end() <= int64(n) {
			end = all[fit].end()
			fit++
		}
		if r.Blocks() != fit || r.Torn != (end < int64(n)) || r.Whole() != end || r.Damaged != 0 {
			t.Fatalf("cut at %d: %d blocks, %d bytes of them, torn %v, %d damaged; want %d blocks, %d bytes", n, r.Blocks(), r.Whole(), r.Torn, r.Damaged, fit, end)
		}
		if fit == seen || fit == 0 {
			continue
		}
		seen = fit
		c, err := r.Seek(at(1e6))
		ok(t, err)
		_, last, _ := r.Span()
		if got, want := of(c.State), s.until(last); want.live != nil && !cmp.Equal(got, want, cmp.AllowUnexported(truth{})) {
			t.Fatalf("cut at %d of %d: %s", n, len(whole), cmp.Diff(want, got, cmp.AllowUnexported(truth{})))
		}
	}
}

// follow are the blocks known to a reader of records only.
func follow(t *testing.T, r *Reader) (c *Cursor, live map[uint32]map[uint64]blocks.Block, gaps int) {
	t.Helper()
	live = map[uint32]map[uint64]blocks.Block{}
	for c = r.Begin(); ; {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			return c, live, gaps
		}
		ok(t, err)
		switch rec.Kind {
		case KindEvent:
			if rec.Event.Kind == model.EventDamaged {
				gaps++
			}
		case KindList:
			if live[rec.List.ID] == nil {
				live[rec.List.ID] = map[uint64]blocks.Block{}
			}
		case KindAlloc:
			live[rec.ID][rec.Block.Addr] = rec.Block
		case KindFree:
			delete(live[rec.ID], rec.Block.Addr)
		case KindClear:
			clear(live[rec.ID])
		case KindEnded:
			clear(live)
		}
	}
}

// A bit that flipped, anywhere in any block, costs the time up to the next key
// block and no more. It is told, and who follows the records knows what holds
// behind it.
func TestFlippedBits(t *testing.T) {
	whole, s := written(t, 3, 45)
	r, err := readerOf(whole)
	ok(t, err)
	all := r.blocks
	lastKey := len(all) - 1
	for !all[lastKey].key {
		lastKey--
	}
	if lastKey < 20 {
		t.Fatalf("the last key block is number %d", lastKey)
	}
	for i, hit := range all {
		places := []int64{hit.end() - hit.offset - 1, blockHeader, blockHeader + int64(hit.payload)/2}
		every := i < 2 || i == lastKey || i == lastKey-1 || i == len(all)-1 // of the header; of others some
		for n := range int64(blockHeader) {
			if every || n == int64(i*7)%blockHeader || n == int64(i*13)%blockHeader {
				places = append(places, n)
			}
		}
		for _, n := range places {
			bit := byte(n+int64(i)) % 8
			flipped := bytes.Clone(whole)
			flipped[hit.offset+n] ^= 1 << bit
			r, err := readerOf(flipped)
			ok(t, err)
			c, live, gaps := follow(t, r)
			unused := n >= 36 && n < blockHeader // the number of the block, which no reader needs
			said := gaps > 0 || r.Torn || i == len(all)-1 && r.Damaged > 0
			if unused == said {
				t.Fatalf("bit %d of byte %d of block %d of %d: %d gaps, torn %v, %d damaged", bit, n, i, len(all), gaps, r.Torn, r.Damaged)
			}
			if r.Blocks() < len(all)-1 {
				t.Fatalf("bit %d of byte %d of block %d: %d blocks of %d", bit, n, i, r.Blocks(), len(all))
			}
			got := of(c.State)
			if i < lastKey && !cmp.Equal(got, s.truth, cmp.AllowUnexported(truth{})) {
				t.Fatalf("bit %d of byte %d of block %d: the end differs though its key block is whole", bit, n, i)
			}
			if !unused && !cmp.Equal(live, got.live) && len(got.live) > 0 {
				t.Fatalf("bit %d of byte %d of block %d: the records end with other blocks: %s", bit, n, i, cmp.Diff(got.live, live))
			}
			if n%8 != 0 {
				continue
			}
			middle := all[i].first + (all[i].last-all[i].first)/2
			if _, err := r.Seek(time.Unix(0, middle)); err != nil {
				t.Fatalf("bit %d of byte %d of block %d: a moment in it: %v", bit, n, i, err)
			}
			marks, err := r.Events()
			ok(t, err)
			if damaged := slices.ContainsFunc(marks, func(m Mark) bool { return m.Event.Kind == model.EventDamaged }); gaps > 0 && !damaged {
				t.Fatalf("bit %d of byte %d of block %d: it is not among the events", bit, n, i)
			}
		}
	}
}

// In a part that is damaged the last snapshot before it is what is known, also if
// it is a key block that rotted; blocks are not known there.
func TestMomentInAGap(t *testing.T) {
	whole, s := written(t, 3, 70)
	r, err := readerOf(whole)
	ok(t, err)
	key := slices.IndexFunc(r.blocks[1:], func(b block) bool { return b.key }) + 1
	hit := r.blocks[key]
	whole[hit.offset+blockHeader+5] ^= 1
	r, err = readerOf(whole)
	ok(t, err)
	c, err := r.Seek(time.Unix(0, hit.last))
	ok(t, err)
	if want := s.until(time.Unix(0, hit.first-1)).snapshot; string(c.JSON()) != want || want == "" {
		t.Error("not the last snapshot that is known")
	}
	if n := len(c.Lists()); n != 0 || len(c.Processes()) != 0 {
		t.Errorf("%d lists of blocks where nothing is known", n)
	}
}

// fullDisk is a file system with room for so many bytes.
func fullDisk(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// randomText makes lines that cannot be compressed.
func randomText(seed uint64) func() string {
	rng := rand.New(rand.NewPCG(seed, 1))
	return func() string {
		b := make([]byte, 100)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return string(b)
	}
}

// A disk that fills up ends a recording, which is whole up to there.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(fullDisk(t, "64k"), "x.ttrec")
	w, err := Create(path, false)
	ok(t, err)
	text, n := randomText(5), 0
	for err = error(nil); err == nil && n < 1e6; n++ {
		err = w.Output(at(float64(n)), Output{1, text()})
		if err == nil {
			err = w.Tick(at(float64(n)), 0)
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("after %d lines: %v", n, err)
	}
	if again := w.Close(); !errors.Is(again, unix.ENOSPC) {
		t.Errorf("closing says %v", again)
	}
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	if r.Torn || r.Whole() != w.Bytes() {
		t.Errorf("torn %v, %d bytes are whole of %d that were written", r.Torn, r.Whole(), w.Bytes())
	}
	lines := 0
	for c := r.Begin(); ; {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if rec.Kind == KindOutput {
			lines++
		}
	}
	if lines != n-1 { // all but the one that found no room
		t.Errorf("%d lines of %d", lines, n-1)
	}
}
