package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

var t0 = tuitest.Start

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

// ok ends the test on an error.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// truth is what a recording must tell, kept by the simplest means.
type truth struct {
	snapshot string
	live     map[uint32]map[uint64]blocks.Block
}

// randomRecording writes things at random and notes the truth after each step.
type randomRecording struct {
	w     *Writer
	rng   *rand.Rand
	now   float64
	truth truth
	steps []step
}

type step struct {
	at    time.Time
	truth truth
}

func newRandomRecording(t testing.TB, w *Writer, seed uint64) *randomRecording {
	s := &randomRecording{w: w, rng: rand.New(rand.NewPCG(seed, 1)), truth: truth{live: map[uint32]map[uint64]blocks.Block{}}}
	ok(t, w.Meta(t0, Meta{Version: "test", Started: t0, Command: []string{"python", "x.py"}}))
	ok(t, w.Process(t0, Process{ID: 1, PID: 42, Start: 7, Name: "python", Method: ByLedger}))
	for id := uint32(1); id <= 2; id++ {
		ok(t, w.List(t0, List{ID: id, Process: 1, Allocator: 1, Pool: []string{"dram", "l1"}[id-1], Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 30, Align: 64}, Chips: []uint64{77}}))
		s.truth.live[id] = map[uint64]blocks.Block{}
	}
	for id := uint32(1); id <= 3; id++ {
		ok(t, w.Site(t0, Site{ID: id, Tag: fmt.Sprint("tag ", id), Stack: []ledgerfile.Frame{{File: "x.py", Line: int(id)}}}))
	}
	return s
}

func (s *randomRecording) step(t testing.TB) {
	s.now += s.rng.Float64() * 0.2
	when := at(s.now)
	switch s.rng.IntN(20) {
	case 0, 1, 2:
		body := wire.Append(nil, tuitest.Host(s.rng.IntN(6)+1, int(s.now)))
		ok(t, s.w.Snapshot(when, body))
		s.truth.snapshot = string(body)
	case 3:
		ok(t, s.w.Event(model.Event{Time: when, Kind: "alert", Text: "hot"}))
	case 4:
		ok(t, s.w.Output(when, Output{1, "a line"}))
	case 5:
		id := uint32(s.rng.IntN(2) + 1)
		ok(t, s.w.Clear(when, id))
		s.truth.live[id] = map[uint64]blocks.Block{}
	default:
		id, addr := uint32(s.rng.IntN(2)+1), uint64(s.rng.IntN(200))*4096
		if _, there := s.truth.live[id][addr]; there {
			ok(t, s.w.Free(when, id, addr))
			delete(s.truth.live[id], addr)
		} else {
			b := blocks.Block{Addr: addr, Size: uint64(1+s.rng.IntN(60)) * 64, Asked: uint64(s.rng.IntN(2)) * 100, Site: uint32(s.rng.IntN(4)), Born: when.UnixNano()}
			b.Tag = b.Site
			ok(t, s.w.Alloc(when, id, b))
			s.truth.live[id][addr] = b
		}
	}
	ok(t, s.w.Tick(when, time.Second))
	s.steps = append(s.steps, step{when, s.truth.clone()})
}

func (x truth) clone() truth {
	c := truth{x.snapshot, map[uint32]map[uint64]blocks.Block{}}
	for id, list := range x.live {
		c.live[id] = map[uint64]blocks.Block{}
		for a, b := range list {
			c.live[id][a] = b
		}
	}
	return c
}

// of is the same from a state.
func of(s *State) truth {
	out := truth{string(s.JSON()), map[uint32]map[uint64]blocks.Block{}}
	for _, id := range s.Lists() {
		out.live[id] = map[uint64]blocks.Block{}
		_, l, _ := s.List(id)
		for b := range l.All() {
			out.live[id][b.Addr] = b
		}
	}
	return out
}

func create(t testing.TB) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := Create(path, false)
	ok(t, err)
	return w, path
}

func TestEveryMomentIsRestored(t *testing.T) {
	w, path := create(t)
	s := newRandomRecording(t, w, 1)
	for range 4000 {
		s.step(t)
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	if r.Torn || r.Blocks() < 100 {
		t.Errorf("torn %v, %d blocks", r.Torn, r.Blocks())
	}
	keys := 0
	for _, b := range r.blocks {
		if b.key {
			keys++
		}
	}
	if keys < 3 {
		t.Errorf("%d key blocks in %v seconds", keys, s.now)
	}
	// Any moment, in any order.
	for range 150 {
		want := s.steps[s.rng.IntN(len(s.steps))]
		c, err := r.Seek(want.at)
		ok(t, err)
		if got := of(c.State); !cmp.Equal(got, want.truth, cmp.AllowUnexported(truth{})) {
			t.Fatalf("at %v: %s", want.at.Sub(t0), cmp.Diff(want.truth, got, cmp.AllowUnexported(truth{})))
		}
		if x, _ := c.Site(2); x.Tag != "tag 2" || c.Meta.Version != "test" {
			t.Fatalf("at %v: site %+v, meta %+v", want.at.Sub(t0), x, c.Meta)
		}
	}
	// And from the beginning to the end, each record once.
	c := r.Begin()
	n := 0
	for {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if rec.Kind != KindMeta && rec.Kind != KindProcess && rec.Kind != KindList && rec.Kind != KindSite {
			n++
		}
	}
	if n != len(s.steps) {
		t.Errorf("%d records, %d were written", n, len(s.steps))
	}
	if got := of(c.State); !cmp.Equal(got, s.truth, cmp.AllowUnexported(truth{})) {
		t.Error("the end differs")
	}
}

// A cursor for snapshots tells the same ones, and nothing of blocks.
func TestSnapshotsOnly(t *testing.T) {
	w, path := create(t)
	s := newRandomRecording(t, w, 7)
	for s.now < 60 {
		s.step(t)
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	texts := func(c *Cursor) (out []string) {
		for {
			rec, err := c.Next()
			if errors.Is(err, io.EOF) {
				return out
			}
			ok(t, err)
			if rec.Kind == KindSnapshot {
				out = append(out, string(c.JSON()))
			}
		}
	}
	only := r.Snapshots()
	if got, want := texts(only), texts(r.Begin()); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d snapshots, or others than the %d that were written", len(got), len(want))
	}
	if n := len(only.Lists()) + len(only.Processes()); n != 0 {
		t.Errorf("%d lists and processes", n)
	}
}

func TestReadWhileWritten(t *testing.T) {
	w, path := create(t)
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	if _, _, some := r.Span(); some {
		t.Error("a recording without blocks has a time")
	}
	s := newRandomRecording(t, w, 4)
	c := r.Begin()
	for range 20 {
		for range 30 {
			s.step(t)
		}
		ok(t, w.Flush())
		ok(t, r.Refresh())
		for {
			if _, err := c.Next(); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
		}
		if got := of(c.State); !cmp.Equal(got, s.truth, cmp.AllowUnexported(truth{})) {
			t.Fatal("the reader behind the writer sees something else")
		}
	}
	ok(t, w.Close())
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	newer := appendFileHeader(nil, 1)
	binary.LittleEndian.PutUint32(newer[8:], 2)
	for name, c := range map[string]struct {
		content []byte
		want    func(error) bool
	}{
		"empty": {nil, func(err error) bool { return errors.Is(err, ErrForeign) }},
		"text":  {[]byte("this is not a recording of anything"), func(err error) bool { return errors.Is(err, ErrForeign) }},
		"newer": {newer, func(err error) bool { _, is := errors.AsType[*VersionError](err); return is }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			ok(t, os.WriteFile(path, c.content, 0o600))
			if _, err := Open(path); err == nil || !c.want(err) {
				t.Error(err)
			}
		})
	}
	if _, err := Open(dir); err == nil {
		t.Error("a folder was opened")
	}
	fifo := filepath.Join(dir, "fifo")
	ok(t, unix.Mkfifo(fifo, 0o600))
	if _, err := Open(fifo); !errors.Is(err, ErrForeign) {
		t.Errorf("a fifo: %v", err)
	}
	path := filepath.Join(dir, "text")
	if _, err := Create(path, false); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	w, err := Create(path, true)
	ok(t, err)
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	r.Close()
}

// Times that go back, after the clock was set, do not make a file unreadable.
func TestClockSetBack(t *testing.T) {
	w, path := create(t)
	for _, s := range []float64{5, 3, 4, 6} {
		ok(t, w.Event(model.Event{Time: at(s), Text: fmt.Sprint(s)}))
		ok(t, w.Flush())
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	if r.Blocks() != 4 || r.Torn {
		t.Errorf("%d blocks, torn %v", r.Blocks(), r.Torn)
	}
}

// An hour of 32 chips once a second stays below 20 MB: two and a half minutes
// of it are written here. The figure with the simulated driver is in make bench.
func TestSizeOfAnHour(t *testing.T) {
	w, path := create(t)
	rng := rand.New(rand.NewPCG(5, 5))
	const seconds = 150
	for s := range seconds {
		snap := tuitest.Host(32, s)
		for i := range snap.Devices { // every figure moves, as on a busy host
			d := &snap.Devices[i]
			for _, f := range []*float64{&d.Temperature.V, &d.Power.V, &d.Voltage.V, &d.Current.V, &d.AICLK.V} {
				*f = float64(int(*f*100)+rng.IntN(50)) / 100
			}
		}
		ok(t, w.Snapshot(snap.Time, wire.Append(nil, snap)))
		ok(t, w.Tick(snap.Time, time.Second))
	}
	ok(t, w.Close())
	st, err := os.Stat(path)
	ok(t, err)
	hour := st.Size() * 3600 / seconds
	t.Logf("%d bytes an hour", hour)
	if hour > 20e6 {
		t.Errorf("an hour takes %d bytes", hour)
	}
}

func FuzzReader(f *testing.F) {
	w, path := create(f)
	s := newRandomRecording(f, w, 6)
	for range 60 {
		s.step(f)
	}
	ok(f, w.Close())
	whole, err := os.ReadFile(path)
	ok(f, err)
	f.Add(whole, true)
	f.Add(whole[:fileHeader], false)
	f.Fuzz(func(t *testing.T, b []byte, damaged bool) {
		if damaged {
			fix(b)
		}
		r, err := NewReader(bytes.NewReader(b), func() (int64, error) { return int64(len(b)), nil })
		if err != nil {
			return
		}
		for c := r.Begin(); err == nil; {
			_, err = c.Next()
			_, _ = c.Snapshot()
		}
		_, _ = r.Seek(at(3))
	})
}

// fix makes the checksums right, so that what is behind them is tried.
func fix(b []byte) {
	for at := int64(fileHeader); at+blockHeader <= int64(len(b)); {
		x, fine := parseBlock(b[at:], at)
		if !fine || x.end() > int64(len(b)) {
			return
		}
		binary.LittleEndian.PutUint32(b[at+32:], checksum(b[at:at+blockHeader], b[at+blockHeader:x.end()]))
		at = x.end()
	}
}

// BenchmarkSnapshot writes snapshots of 32 boards: each to a block of its own, as
// ttmon record does, and ten to a block, as the journal does.
func BenchmarkSnapshot(b *testing.B) {
	var docs [][]byte
	for s := range 40 {
		docs = append(docs, wire.Append(nil, tuitest.Host(32, s)))
	}
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n, " to a block"), func(b *testing.B) {
			e, err := NewEncoder()
			ok(b, err)
			b.ReportAllocs()
			var out []byte
			written := 0
			for i := 0; b.Loop(); i++ {
				ok(b, e.Snapshot(at(float64(i)), docs[i%len(docs)]))
				if i%n == n-1 {
					out, _ = e.Cut(out[:0])
					written += len(out)
				}
			}
			b.ReportMetric(float64(written)/float64(b.N), "bytes/snapshot")
		})
	}
}
