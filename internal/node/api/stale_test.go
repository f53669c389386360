package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// TestStale: everybody may know how much the dead left. Who they were and who
// uses the region is for its owner and root, where /proc hides processes.
func TestStale(t *testing.T) {
	left := model.Leftover{
		Region: "/dev/shm/tt_device_5_memory", ChipID: 5, Owner: 1, StaleSlots: []model.StaleSlot{{PID: 7, Name: "python"}},
		Blocked: &model.Doubt{Kind: model.RegionInUse, PIDs: []int{9}},
	}
	left.StaleSlots[0].Bytes[model.DRAM] = model.ExactBytes(128)
	for _, c := range []struct {
		name   string
		hiding Hiding
		uid    int
		known  bool
	}{
		{"nothing is hidden", Hiding{GID: -1}, 2, true},
		{"hidden from another", Hiding{Level: 1, GID: -1}, 2, false},
		{"not from the owner", Hiding{Level: 2, GID: -1}, 1, true},
		{"not from root", Hiding{Level: 2, GID: -1}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{
				Feed: new(Feed), Ledger: ledger.New(ledger.Options{}), Hiding: func() Hiding { return c.hiding },
				Stale: func() ([]model.Leftover, bool) { return []model.Leftover{left}, true },
			})
			r := httptest.NewRequest(http.MethodGet, "/v1/stale", nil)
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{uid: c.uid, exists: true}))
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, r)
			got, err := wire.DecodeStale(w.Body.Bytes())
			if err != nil || len(got.Regions) != 1 {
				t.Fatalf("%v: %s", err, w.Body)
			}
			g := &got.Regions[0]
			if !g.StaleSlots[0].Bytes[model.DRAM].Exactly(128) || g.Blocked == nil {
				t.Errorf("%+v", g)
			}
			if known := g.StaleSlots[0].Name == "python" && len(g.Blocked.PIDs) == 1; known != c.known {
				t.Errorf("who it was is told: %v, want %v: %s", known, c.known, w.Body)
			}
		})
	}
	s := New(Options{Feed: new(Feed), Ledger: ledger.New(ledger.Options{}), Stale: func() ([]model.Leftover, bool) { return nil, false }})
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/stale", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("before anybody looked: %d %s", w.Code, w.Body)
	}
	if left.StaleSlots[0].Name == "" || len(left.Blocked.PIDs) == 0 {
		t.Error("what the collector published was changed")
	}
}
