package gauge

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// Every gauge finds its metric, has a value on a healthy board and none on a
// hung one, except for memory, which is accounted elsewhere.
func TestGauges(t *testing.T) {
	s := tuitest.Host(4, 0)
	ok, hung := &s.Devices[1], &s.Devices[3]
	ok.Work = model.Work{Busy: model.Value(0.6)} // the others tell an estimate
	for _, g := range New().All() {
		v, known := g.Value(s, ok)
		if !known || v < 0 {
			t.Errorf("%s: %v, %v on a healthy board", g.Name, v, known)
		}
		if g.Help == "" || g.Title == "" {
			t.Errorf("%s says nothing about itself", g.Name)
		}
		if limit := g.Limit(s, ok); limit != 0 && limit < v {
			t.Errorf("%s: %v is above its limit %v", g.Name, v, limit)
		}
		if _, known := g.Value(s, hung); known {
			t.Errorf("%s has a value on a hung board without memory figures", g.Name)
		}
	}
	set := New()
	if set.Find("power") == nil || set.Find("nonsense") != nil {
		t.Error("Find")
	}
	if l := set.Find("dram").Limit(s, ok); l != 32<<30 {
		t.Errorf("limit of DRAM %v", l)
	}
	if l := set.Find("activity").Limit(s, ok); l != 1 {
		t.Errorf("limit of activity %v", l)
	}
}

func TestRecord(t *testing.T) {
	set, h := New(), history.New()
	for i := range 3 {
		set.Record(h, tuitest.Host(4, i))
	}
	s := tuitest.Host(4, 2)
	b := make([]history.Bucket, 1)
	at := s.Time
	h.Range(b, set.Find("power").Key("0000:02:00.0"), at, time.Second)
	if want, _ := set.Find("power").Value(s, &s.Devices[1]); float64(b[0].Last) != want {
		t.Errorf("power recorded as %v, is %v", b[0].Last, want)
	}
	h.Range(b, set.Find("power").Key("0000:04:00.0"), at, time.Second)
	if b[0].State == history.Sampled {
		t.Error("a value was recorded for a hung board")
	}
	// Chips of a board have series of their own; a single chip shares the board's.
	h.Range(b, ChipKey(&s.Devices[0], 1, model.DRAM), at, time.Second)
	if want, _, _ := s.Devices[0].Chips[1].Memory.Pools[model.DRAM].Used.Best(); b[0].State != history.Sampled || b[0].Last != float32(want) {
		t.Errorf("chip R recorded as %v, is %d", b[0], want)
	}
	h.Range(b, ChipKey(&s.Devices[1], 0, model.DRAM), at, time.Second)
	if b[0].State != history.Sampled {
		t.Error("the only chip of a board has no series")
	}
}

func TestSpan(t *testing.T) {
	a := []history.Bucket{{State: history.Sampled, Min: 3, Max: 5}, {State: history.Gap}, {}}
	b := []history.Bucket{{State: history.Sampled, Min: 1, Max: 4}}
	if lo, hi, ok := Span(a, b); lo != 1 || hi != 5 || !ok {
		t.Errorf("span %v %v %v", lo, hi, ok)
	}
	if _, _, ok := Span(nil, []history.Bucket{{}}); ok {
		t.Error("nothing has a span")
	}
}

// What processes hold is kept by process, not by pid, and a sum that leaves
// something out says so.
func TestProcessesOverTime(t *testing.T) {
	h := history.New()
	set := New()
	snap := tuitest.Host(4, 0)
	set.Record(h, snap)
	serve, denied := snap.Processes[0].ID(), snap.Processes[2].ID()
	b := make([]history.Bucket, 1)
	h.Range(b, ProcessKey(serve, "dram"), snap.Time, time.Second)
	if b[0].State != history.Sampled || b[0].Last == 0 {
		t.Errorf("DRAM of %v: %+v", serve, b[0])
	}
	h.Range(b, ProcessKey(denied, "dram"), snap.Time, time.Second)
	if b[0].State == history.Sampled {
		t.Errorf("DRAM that may not be seen: %+v", b[0])
	}
	h.Range(b, ProcessKey(denied, "cpu"), snap.Time, time.Second)
	if b[0].State != history.Sampled || b[0].Last != 55 {
		t.Errorf("CPU of %v: %+v", denied, b[0])
	}
	if other := (model.ProcessID{PID: serve.PID, StartTicks: serve.StartTicks + 1}); ProcessKey(other, "dram") == ProcessKey(serve, "dram") {
		t.Error("a reused pid continues the figures of the dead process")
	}
}
