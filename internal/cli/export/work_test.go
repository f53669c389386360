package export

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// heard is a sink that notes what is about work.
type heard struct{ lines []string }

func (h *heard) Point(s *Series, p Point, bound model.Bound) {
	if s.Field == "busy" || s.Field == "operation.share" {
		h.lines = append(h.lines, fmt.Sprintf("%ds %s: %s %.2f %s", (p.NS-at(0).UnixNano())/1e9, s.Group, s.Name, p.V, bound))
	}
}

func (h *heard) Slice(s *Slice) {
	if s.Track == "waits for its chips" {
		from, to := s.From-at(0).UnixNano(), s.To-at(0).UnixNano()
		h.lines = append(h.lines, fmt.Sprintf("%s %d…%d s", s.Name, from/1e9, to/1e9))
	}
}
func (h *heard) Instant(*Instant) {}
func (h *heard) Aligned([]Slice)  {}
func (h *heard) Close() error     { return nil }

// Busy and operations are figures over time, waits are slices as far as they
// were seen.
func TestWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test", Started: at(0)}))
	for s := range 6 {
		snap := tuitest.Host(1, s)
		snap.Time = at(float64(s))
		p := &snap.Processes[0]
		snap.Processes = snap.Processes[:1]
		snap.Devices[0].Work = model.Work{Busy: model.Value(0.5), Bound: model.AtLeast, Cause: model.WorkLossy, Window: 1}
		c := model.ChipWork{Device: 0, ChipID: 7, Work: model.Work{Busy: model.Value(0.5), Bound: model.AtLeast, Window: 1}}
		for n := range opsOfChip + 5 { // more than have series; the later ones took more
			c.Operations = append(c.Operations, model.Operation{Name: fmt.Sprint("op", n), Time: uint64(n + 1), Calls: 1, Share: model.Value(0.01), Rate: model.Value(1.0)})
		}
		p.Work = model.ProcessWork{Watched: true, Chips: []model.ChipWork{c}}
		if s >= 2 && s <= 4 {
			p.Work.Host = model.HostWork{WaitingSince: at(1), WaitingFor: model.WaitsForFinish, LastName: "op1"}
		}
		ok(t, w.Snapshot(snap.Time, wire.Append(nil, snap)))
	}
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	var h heard
	ok(t, Write(r, Options{}, nil, &h))
	all := strings.Join(h.lines, "\n")
	for _, want := range []string{"2s device 0 ", ": Busy 0.50 at_least", "waits in finish 1…4 s"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	names := map[string]bool{}
	for _, l := range h.lines {
		if _, rest, is := strings.Cut(l, ": op"); is {
			names["op"+strings.Fields(rest)[0]] = true
		}
	}
	want := map[string]bool{}
	for n := range opsOfChip {
		want[fmt.Sprint("op", 5+n)] = true
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("operations -want +got:\n%s", diff)
	}
}
