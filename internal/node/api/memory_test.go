package api

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
)

// TestMemoryTable: a line for each pool of each device and chip, with as many fields as
// there are names; what is missing is "-", and no figure is without its bound.
func TestMemoryTable(t *testing.T) {
	h := serve(t, nil)
	snap := sample.Four()
	snap.Devices[1].Memory.Pools[model.DRAM].Used = model.ExactBytes(1 << 30).Doubted(model.AtLeast)
	h.feed.Publish(snap)
	status, body := h.get("/v1/memory")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	rows := 0
	for i := range snap.Devices {
		rows += (1 + len(snap.Devices[i].Chips)) * len(model.Pools())
	}
	if status != 200 || len(lines) != 1+rows {
		t.Fatalf("status %d, %d lines, want %d:\n%s", status, len(lines), 1+rows, body)
	}
	for _, line := range lines {
		if n := strings.Count(line, " "); n != strings.Count(memoryHead, " ") {
			t.Errorf("%d fields: %q", n+1, line)
		}
	}
	if !strings.Contains(body, " all - dram 1073741824 at_least ") || !strings.Contains(body, " - missing ") {
		t.Errorf("no bound, or nothing missing:\n%s", body)
	}
	for target, want := range map[string]int{"?device=1": 200, "?device=99": 404, "?device=-1": 400, "?device=x": 400} {
		t.Run(target, func(t *testing.T) {
			if status, body := h.get("/v1/memory" + target); status != want {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
}
