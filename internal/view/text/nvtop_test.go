package text

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestAppendNvtop(t *testing.T) {
	var got []map[string]any
	if err := json.Unmarshal(AppendNvtop(nil, tuitest.Host(4, 0)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"device_name": "Blackhole p150a", "gpu_clock": "1350MHz", "mem_clock": nil, "temp": "63C", "fan_speed": "2168RPM", "power_draw": "140W",
		"gpu_util": nil, "encode": nil, "decode": nil, "mem_util": "22%", "mem_total": "34359738368", "mem_used": "7516192768", "mem_free": nil,
		"processes": []any{map[string]any{
			"pid": "182034", "cmdline": "python3 serve.py --model llama-70b --max-batch 32 --port 8000", "kind": "compute", "user": "root",
			"gpu_usage": nil, "gpu_mem_bytes_alloc": "7516192768", "gpu_mem_usage": "22%", "encode": nil, "decode": nil,
		}},
	}
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Error(diff)
	}
	busy := tuitest.Host(1, 0)
	busy.Devices[0].Work.Busy, busy.Devices[0].Work.Bound = model.Value(0.724), model.Exact
	busy.Processes[0].Work.Chips = []model.ChipWork{{Work: model.Work{Busy: model.Value(0.5), Bound: model.Exact}}}
	if b := string(AppendNvtop(nil, busy)); !strings.Contains(b, `"gpu_util": "72%"`) || !strings.Contains(b, `"gpu_usage": "50%"`) {
		t.Errorf("measured, and not shown:\n%s", b)
	}
	busy.Devices[0].Work.Bound = model.AtLeast
	if b := string(AppendNvtop(nil, busy)); !strings.Contains(b, `"gpu_util": null`) {
		t.Errorf("a bound, without its mark:\n%s", b)
	}
	// A hung device has no figures, and says so by null rather than 0.
	if got[3]["temp"] != nil || got[3]["mem_used"] != nil || got[3]["fan_speed"] != nil {
		t.Errorf("hung device: %v", got[3])
	}
	if b := AppendNvtop(nil, tuitest.Host(0, 0)); string(b) != "[]\n" {
		t.Errorf("no device: %s", b)
	}
}
