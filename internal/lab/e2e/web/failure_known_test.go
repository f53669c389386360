package web

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/failure/keep"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// knownFailure is a failure with three lines that hold blocks.
func knownFailure() *failure.Record {
	now := time.Now().UTC()
	frame := func(line int, function string) []ledgerfile.Frame {
		return []ledgerfile.Frame{{File: "/home/anna/model.py", Line: line, Function: function}, {File: "/home/anna/serve.py", Line: 12 + line%10, Function: "main"}}
	}
	const kib = 1 << 10
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 110, Base: 64 * kib, Capacity: 1300 * kib, Align: 64, Smallest: 64}, blocks.FromStart)
	for _, b := range []struct {
		at, size uint64
		site     uint32
		age      time.Duration
	}{{0, 400, 1, 2 * time.Minute}, {416, 240, 1, 2 * time.Minute}, {700, 128, 2, 4 * time.Second}, {868, 256, 2, 3 * time.Second}, {1124, 176, 3, 2 * time.Minute}} {
		l.Alloc(blocks.Block{Addr: (64 + b.at) * kib, Size: b.size * kib, Site: b.site, Born: now.Add(-b.age).UnixNano()})
	}
	device, no := 0, false
	r := &failure.Record{
		Schema: failure.Schema, Kind: failure.NoRoom, Time: now, First: now, Last: now, Count: 1, Source: "track", Pool: "l1", State: l,
		Process: failure.Process{PID: 4242, Start: 1, Name: "python", Command: "python serve.py", Release: "ttnn 0.81.1"},
		Chips:   []failure.Chip{{ID: 7, Device: &device, BusID: "0000:01:00.0", Board: "p150a"}},
		Request: failure.Request{Bytes: 110 * 80 * kib, BankBytes: 80 * kib, Page: 2048, Sharded: &no}, Stack: frame(131, "scores"),
		Sites:    []failure.Site{{Number: 1, Stack: frame(88, "kv_cache")}, {Number: 2, Stack: frame(130, "probs")}, {Number: 3, Tag: "weights", Stack: frame(40, "embed")}},
		Siblings: []failure.Sibling{}, Others: []failure.Other{}, Doubts: []failure.DoubtKind{},
	}
	r.Judge()
	return r
}

// TestFailureThatIsKept: what ttmond kept before it was started is drawn to scale,
// with one colour for each line, and the missing piece at the largest hole.
func TestFailureThatIsKept(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "p150a"})
	n.stop()
	keep.Open(filepath.Join(n.dir, "ttmond", "failures"), keep.DefaultLimits, slog.New(slog.DiscardHandler)).Add(knownFailure())
	n.start(strings.TrimPrefix(n.url, "http://"))
	for _, l := range []look{desk, telephone} {
		b := open(t, l, n.ticket())
		b.says("Signed in as root")
		b.visit(n.url + "/failures/f1")
		b.until("the bank is drawn", `document.querySelectorAll(".bank.missing .block").length === 5`)
		b.says("the largest hole is 36 KiB too small")
		b.says("without the block at 0xbf000 of model.py:130 probs")
		if rows := eval[[]string](b, `[...document.querySelectorAll("table.holders tbody tr")].map(e => e.innerText.replaceAll(/\s+/g, " "))`); len(rows) != 3 || !strings.HasPrefix(strings.TrimSpace(rows[0]), "model.py:88 kv_cache 640 KiB") {
			t.Errorf("holders: %q", rows)
		}
		if n := eval[int](b, `new Set([...document.querySelectorAll(".bank.missing .block")].map(e => getComputedStyle(e).fill)).size`); n != 3 {
			t.Errorf("the blocks of three lines have %d colours", n)
		}
		// The piece is 80 of 1300 KiB, at the hole from 656 to 700, to scale.
		b.until("the piece is drawn to scale", `(() => { const w = document.querySelector(".bank.missing svg").getBoundingClientRect(), p = document.querySelector(".bank.missing .piece").getBoundingClientRect();
			return Math.abs((p.left - w.left) / w.width - 656 / 1300) < 0.002 && Math.abs(p.width / w.width - 80 / 1300) < 0.002; })()`)
		b.fitsWidth("a failure")
		b.shoot(fmt.Sprintf("failure-known-%d", l.width))
	}
}
