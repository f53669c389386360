package text

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	// A hung device has no figures, and says so by null rather than 0.
	if got[3]["temp"] != nil || got[3]["mem_used"] != nil || got[3]["fan_speed"] != nil {
		t.Errorf("hung device: %v", got[3])
	}
	if b := AppendNvtop(nil, tuitest.Host(0, 0)); string(b) != "[]\n" {
		t.Errorf("no device: %s", b)
	}
}
