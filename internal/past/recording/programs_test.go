package recording

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/launches"
)

func ranAt(s float64, length int64, name string) launches.Program {
	return launches.Program{Start: at(s).UnixNano(), Length: length, Name: name}
}

// What is written of programs is read, whole and in order, beside all else; readers
// of snapshots pass over it.
func TestPrograms(t *testing.T) {
	list := []*Programs{
		{PID: 42, Start: 7, Process: "python", Chip: 1<<64 - 1, List: []launches.Program{ranAt(1, 700, "matmul"), ranAt(1.1, 0, ""), ranAt(1.05, 1<<40, "matmul")}},
		{PID: 42, Start: 7, Process: "python", Chip: 78, Number: 1, Missed: 12, Lost: 3, Broken: true},
		{PID: 1 << 22, Number: 255, List: []launches.Program{ranAt(30, 5, "after the record")}},
	}
	w, path := create(t)
	s := newRandomRecording(t, w, 5)
	for _, p := range list {
		s.step(t)
		ok(t, w.Programs(at(s.now), p))
	}
	ok(t, w.Programs(at(0), list[0])) // a time that goes back
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	var got []*Programs
	for c := r.Begin(); ; {
		x, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if x.Kind == KindPrograms {
			got = append(got, x.Programs)
		}
	}
	for _, p := range list {
		if p.List == nil {
			p.List = []launches.Program{}
		}
	}
	if diff := cmp.Diff(append(list, list[0]), got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	snapshots := r.Snapshots()
	for {
		x, err := snapshots.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if ok(t, err); x.Kind == KindPrograms {
			t.Error("a reader of snapshots reads programs")
		}
	}
}

// FuzzPrograms: whatever a record says, it is refused, or can be written again.
func FuzzPrograms(f *testing.F) {
	ns := time.Now().UnixNano()
	f.Add(ns, appendPrograms(nil, ns, &Programs{PID: 1, Process: "x", List: []launches.Program{{Start: ns - 5, Length: 3, Name: "a"}}}))
	f.Add(int64(0), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, ns int64, body []byte) {
		p, read := decodePrograms(ns, body)
		if !read {
			return
		}
		if len(p.List) > len(body) {
			t.Fatalf("%d programs of %d bytes", len(p.List), len(body))
		}
		again, read := decodePrograms(ns, appendPrograms(nil, ns, p))
		if !read {
			t.Fatalf("%+v cannot be written", p)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("-read +read again:\n%s", diff)
		}
	})
}
