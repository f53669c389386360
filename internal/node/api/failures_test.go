package api

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
)

// oneFailure keeps f1, of our own user, and f2, of another.
type oneFailure struct{}

func failed(id string, uid int) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4032})
	r := &failure.Record{
		Schema: failure.Schema, ID: id, Kind: failure.NoRoom, Time: time.Now(), Count: 1, Pool: "l1", State: l, Process: failure.Process{PID: 7, UID: uid, Name: "python"},
		Request: failure.Request{BankBytes: 128}, Chips: []failure.Chip{{ID: 5}}, Sites: []failure.Site{}, Siblings: []failure.Sibling{}, Others: []failure.Other{}, Doubts: []failure.DoubtKind{},
	}
	r.Judge()
	return r
}

func (oneFailure) all() []*failure.Record {
	return []*failure.Record{failed("f2", os.Geteuid()+1), failed("f1", os.Geteuid())}
}

func (o oneFailure) List(allow func(uid int) bool) (list []failure.Summary) {
	for _, r := range o.all() {
		if allow(r.Process.UID) {
			list = append(list, r.Summary())
		}
	}
	return list
}

func (o oneFailure) Get(id string) (*failure.Record, bool) {
	for _, r := range o.all() {
		if r.ID == id {
			return r, true
		}
	}
	return nil, false
}

func TestFailures(t *testing.T) {
	h := serve(t, func(o *Options) { o.Failures = oneFailure{} })
	_, body := h.get("/v1/failures")
	var list failure.List
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Schema != failure.ListSchema || len(list.Failures) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	for _, tt := range []struct {
		path   string
		status int
	}{
		{"/v1/failures/f1", 200},
		{"/v1/failures/last?pid=7", 200},
		{"/v1/failures/last?pid=8", 404},
		{"/v1/failures/last?pid=x", 400},
		{"/v1/failures/f3", 404},
	} {
		t.Run(tt.path, func(t *testing.T) {
			if status, body := h.get(tt.path); status != tt.status {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
}

// TestFailuresAreTheOwners: other users get the answer that there is none.
func TestFailuresAreTheOwners(t *testing.T) {
	other := caller{uid: 4711, exists: true}
	if other.owns(os.Geteuid()) || other.owns(-1) {
		t.Error("a user sees the failures of others")
	}
	if list := (oneFailure{}).List(other.owns); len(list) != 0 {
		t.Errorf("%d failures of others are listed", len(list))
	}
	owner := caller{uid: os.Geteuid(), exists: true}
	if !owner.owns(os.Geteuid()) {
		t.Error("the owner does not see its own")
	}
}
