package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
)

func failed(id string, when time.Time, count uint64) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4032, Site: 1})
	r := &failure.Record{
		Schema: failure.Schema, ID: id, Kind: failure.NoRoom, Time: when, First: when, Last: when, Count: count, Source: "track", Pool: "l1", State: l,
		Process: failure.Process{PID: 42, Start: 7, Name: "python"}, Request: failure.Request{BankBytes: 128},
	}
	r.Judge()
	return r
}

// A failure that repeats is told again; what was told last counts.
func TestFailures(t *testing.T) {
	w, path := create(t)
	s := newRandomRecording(t, w, 5)
	for i := range 3 {
		s.step(t)
		ok(t, w.Failure(at(s.now), failed("f1", at(1), uint64(i+1))))
	}
	ok(t, w.Failure(at(s.now), failed("f2", at(0.5), 7)))
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	list, err := r.Failures()
	ok(t, err)
	if len(list) != 2 || list[0].ID != "f2" || list[1].Count != 3 || list[0].Verdict.Cause != failure.Full || list[0].State.Usage().Blocks != 1 {
		t.Fatalf("%+v", list)
	}
	told := 0
	for c := r.Begin(); ; {
		x, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if x.Kind == KindFailure && x.Failure != nil {
			told++
		}
	}
	if told != 4 {
		t.Errorf("%d of 4 are told in their place", told)
	}
}

// What a newer ttmon records of a failure, in a form that is not known here, costs
// nothing but itself.
func TestFailureOfTheFuture(t *testing.T) {
	w, path := create(t)
	s := newRandomRecording(t, w, 6)
	s.step(t)
	ok(t, w.Add(KindFailure, at(s.now), []byte(`{"schema":"ttmon.failure/2"}`)))
	ok(t, w.Add(KindFailure, at(s.now), []byte(`no JSON`)))
	ok(t, w.Add(Kind(200), at(s.now), binary.AppendUvarint(nil, 5)))
	ok(t, w.Failure(at(s.now), failed("f1", at(s.now), 1)))
	for range 20 {
		s.step(t)
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	list, err := r.Failures()
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for c := r.Begin(); ; {
		if _, err := c.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	w, path := create(t)
	for i := range maxFailures + 3 {
		ok(t, w.Failure(at(float64(i)), failed(fmt.Sprint("f", i), at(float64(i)), 1)))
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	list, err := r.Failures()
	ok(t, err)
	if len(list) != maxFailures || list[0].ID != "f3" {
		t.Errorf("%d failures, the first is %s", len(list), list[0].ID)
	}
}
