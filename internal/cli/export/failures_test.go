package export

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// A failure is one mark at the time at which it failed, with its story, however
// often it was told.
func TestFailuresAreMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test", Started: at(0)}))
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 1024, Size: 2048, Site: 1})
	frame := ledgerfile.Frame{File: "/home/x/model.py", Line: 88, Function: "cache"}
	for n := range 3 {
		r := &failure.Record{
			Schema: failure.Schema, ID: "f1", Kind: failure.NoRoom, Time: at(2), First: at(2), Last: at(2), Count: uint64(n + 1), Pool: "l1", State: l,
			Process: failure.Process{PID: 4242, Name: "python"}, Request: failure.Request{BankBytes: 1536}, Stack: []ledgerfile.Frame{frame},
			Sites: []failure.Site{{Number: 1, Stack: []ledgerfile.Frame{frame}}},
		}
		r.Judge()
		ok(t, w.Failure(at(3+float64(n)), r))
	}
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	var b bytes.Buffer
	ok(t, Write(r, Options{}, nil, NewJSONL(&b)))
	var marks []string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "failed allocations") {
			marks = append(marks, line)
		}
	}
	if len(marks) != 1 {
		t.Fatalf("%d marks:\n%s", len(marks), b.String())
	}
	if !json.Valid([]byte(marks[0])) {
		t.Error("no JSON")
	}
	for _, want := range []string{stamp(at(2).UnixNano()), "3 times", "fragmented", "model.py:88 cache", "would have fitted", "4242"} {
		if !strings.Contains(marks[0], want) {
			t.Errorf("it does not say %q: %s", want, marks[0])
		}
	}
	b.Reset()
	ok(t, Write(r, Options{}, nil, toPerfetto(&b)))
	if !strings.Contains(b.String(), "would have fitted") {
		t.Error("the trace has no story")
	}
}
