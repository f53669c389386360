package export

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// lasting keeps the last point of each series of blocks up to a time, and the
// marks.
type lasting struct {
	counting
	until int64
	last  map[string]float64
	marks []string
}

func (l *lasting) Point(s *Series, p Point, _ model.Bound) {
	if p.NS <= l.until {
		l.last[s.Name] = p.V
	}
}

func (l *lasting) Instant(x *Instant) { l.marks = append(l.marks, x.Name) }

// damaged is a recording of two minutes in which blocks come and go, and of which
// a block of the file in the middle is damaged.
func damaged(t *testing.T) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Process(at(0), recording.Process{ID: 1, PID: 4242, Name: "python", Method: recording.ByLedger}))
	ok(t, w.List(at(0), recording.List{ID: 2, Process: 1, Allocator: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 32}, Chips: []uint64{77}}))
	ok(t, w.Site(at(0), recording.Site{ID: 1, Tag: "weights", Stack: []ledgerfile.Frame{{File: "/home/x/model.py", Line: 41, Function: "load"}}}))
	for i := range 1200 {
		now := at(float64(i) / 10)
		if i >= 50 {
			ok(t, w.Free(now, 2, uint64(i%50)*mib))
		}
		ok(t, w.Alloc(now, 2, blocks.Block{Addr: uint64(i%50) * mib, Size: uint64(1000 + 8*i), Site: 1}))
		ok(t, w.Tick(now, 0))
	}
	ok(t, w.Close())
	b, err := os.ReadFile(path)
	ok(t, err)
	middle := len(b)/2 + bytes.Index(b[len(b)/2:], []byte("TTRB"))
	b[middle+45] ^= 1
	ok(t, os.WriteFile(path, b, 0o600))
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// Behind a part that is damaged the figures are right again, and it is marked.
func TestBehindDamage(t *testing.T) {
	r := damaged(t)
	end := at(119)
	l := &lasting{until: end.UnixNano(), last: map[string]float64{}}
	ok(t, Write(r, Options{}, nil, l))
	if r.Damaged != 1 {
		t.Fatalf("%d places are damaged", r.Damaged)
	}
	c, err := r.Seek(end)
	ok(t, err)
	_, live, _ := c.List(2)
	held := 8 * live.Usage().BankBytes
	if got := l.last["DRAM, exact, chip 77"]; got != float64(held) || held == 0 {
		t.Errorf("%v bytes are held, want %d", got, held)
	}
	if len(l.marks) != 1 {
		t.Errorf("marks %q", l.marks)
	}
	heap, err := Profile(r, end)
	ok(t, err)
	p, err := profile.ParseData(heap)
	ok(t, err)
	var now, allocated int64
	for _, s := range p.Sample {
		now, allocated = now+s.Value[3], allocated+s.Value[0]
	}
	if now != int64(held) || allocated > 1200 || allocated < 600 {
		t.Errorf("the profile has %d bytes held, want %d; %d allocations of at most 1200", now, held, allocated)
	}
}
