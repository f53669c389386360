package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestBlocks(t *testing.T) {
	list := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 20}, blocks.FromStart)
	list.Alloc(blocks.Block{Addr: 64, Size: 128, Asked: 1000})
	known := &blocks.Process{PID: 7, Allocators: []*blocks.Allocator{{Chips: []uint64{5}, Lists: []*blocks.List{list}}}}
	sites := func() []callsite.Site { return []callsite.Site{{Number: 3, Tag: "weights"}} }
	for _, c := range []struct {
		name, path string
		blocks     func(int) (BlocksOf, bool)
		hiding     Hiding
		uid        int
		status     int
	}{
		{"its owner", "7", func(pid int) (BlocksOf, bool) { return BlocksOf{Process: known, UID: 1, Sites: sites}, pid == 7 }, Hiding{GID: -1}, 1, http.StatusOK},
		{"unknown process", "8", func(pid int) (BlocksOf, bool) { return BlocksOf{Process: known}, pid == 7 }, Hiding{GID: -1}, 1, http.StatusNotFound},
		{"no pid", "x", func(int) (BlocksOf, bool) { return BlocksOf{Process: known}, true }, Hiding{GID: -1}, 1, http.StatusBadRequest},
		{"no uprobes", "7", nil, Hiding{GID: -1}, 1, http.StatusNotFound},
		{"another user", "7", func(int) (BlocksOf, bool) { return BlocksOf{Process: known, UID: 1}, true }, Hiding{GID: -1}, 2, http.StatusForbidden},
		{"root", "7", func(int) (BlocksOf, bool) { return BlocksOf{Process: known, UID: 1}, true }, Hiding{GID: -1}, 0, http.StatusOK},
		// A caller who may not see the process may not see its blocks.
		{"hidden", "7", func(int) (BlocksOf, bool) { return BlocksOf{Process: known, UID: 1}, true }, Hiding{Level: 2, GID: -1}, 2, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{Blocks: c.blocks, Hiding: func() Hiding { return c.hiding }})
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/v1/processes/"+c.path+"/blocks", nil)
			s.handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{uid: c.uid, exists: true})))
			if w.Code != c.status {
				t.Errorf("%+v: %d %s", c.path, w.Code, w.Body)
			}
			if c.status != http.StatusOK {
				return
			}
			var answer struct {
				Process *blocks.Process
				Sites   []callsite.Site
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Process.Blocks() != 1 {
				t.Errorf("%v: %s", err, w.Body)
			}
			if of, _ := c.blocks(7); (of.Sites != nil) != (len(answer.Sites) == 1 && answer.Sites[0].Tag == "weights") {
				t.Errorf("the lines that hold them: %s", w.Body)
			}
		})
	}
}

// TestLedgerBlocks: what the ledger of a process says is known of it, and nothing
// where it keeps none.
func TestLedgerBlocks(t *testing.T) {
	p := &blocks.Process{PID: 7}
	if of := LedgerBlocks(p, 1, nil); of.Frees != nil || of.Sites != nil || of.Process != p || of.UID != 1 {
		t.Errorf("without a ledger: %+v", of)
	}
	of := LedgerBlocks(p, 1, &ledgerfile.Ledger{Started: time.Now()})
	if of.Frees == nil || of.Frees() == nil || of.Sites == nil || len(of.Sites()) != 0 {
		t.Errorf("with an empty ledger: %+v", of)
	}
}
