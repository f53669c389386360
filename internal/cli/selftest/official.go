package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
)

// officialSnapshot is what of tt-smi's snapshot is compared.
type officialSnapshot struct {
	Devices []struct {
		Board struct {
			BusID string `json:"bus_id"`
			Type  string `json:"board_type"`
			ID    string `json:"board_id"`
		} `json:"board_info"`
		Telemetry map[string]any `json:"telemetry"`
	} `json:"device_info"`
}

// official compares with Tenstorrent's own tool, which wakes chips: only where
// the user agreed.
func (t *test) official(ctx context.Context, r *report.Report) {
	if t.Official == "" {
		r.Add(report.Row{Part: report.Official, What: "tt-smi", Verdict: report.Unknown, Note: "it wakes chips: --tt-smi compares with it"})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.Limit/4)
	defer cancel()
	out, err := output(ctx, t.Official, "-s", "--snapshot_no_tty")
	if err != nil {
		r.Add(report.Row{Part: report.Official, What: "tt-smi", Verdict: report.Failed, Note: "it failed: " + err.Error()})
		return
	}
	var theirs officialSnapshot
	begin := strings.IndexByte(string(out), '{')
	if begin < 0 || json.Unmarshal(out[begin:], &theirs) != nil {
		r.Add(report.Row{Part: report.Official, What: "tt-smi", Verdict: report.Failed, Note: "its snapshot is not understood"})
		return
	}
	t.compareOfficial(ctx, r, &theirs)
}

func (t *test) compareOfficial(ctx context.Context, r *report.Report, theirs *officialSnapshot) {
	s := t.snapshot(ctx)
	for i := range s.Devices {
		d := &s.Devices[i]
		for _, x := range theirs.Devices {
			if !strings.EqualFold(x.Board.BusID, d.BusID) {
				continue
			}
			if d.Serial.Known() && x.Board.ID != "" {
				out := row(report.Official, "board.serial", d.Index, agree(sameHex(d.Serial.V, x.Board.ID)), "")
				out.Ours, out.Witness, out.By = d.Serial.V, x.Board.ID, "tt-smi"
				r.Add(out)
			}
			if v, ok := number(x.Telemetry["asic_temperature"]); ok && d.Temperature.Known() {
				out := row(report.Official, "temperature.asic", d.Index, agree(between(d.Temperature.V, v, v, 5)), "it woke the chip, which may have warmed it")
				out.Ours, out.Witness, out.By = fmt.Sprintf("%.1f °C", d.Temperature.V), fmt.Sprintf("%.1f °C", v), "tt-smi"
				r.Add(out)
			}
			if v, ok := number(x.Telemetry["voltage"]); ok && d.Voltage.Known() {
				out := row(report.Official, "voltage.core", d.Index, agree(between(d.Voltage.V, v, v, 0.1)), "")
				out.Ours, out.Witness, out.By = fmt.Sprintf("%.2f V", d.Voltage.V), fmt.Sprintf("%.2f V", v), "tt-smi"
				r.Add(out)
			}
		}
	}
}

// number reads what tt-smi writes as text or as a number.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n, err == nil
	}
	return 0, false
}

func sameHex(a, b string) bool {
	trim := func(s string) string { return strings.TrimLeft(strings.TrimPrefix(strings.ToLower(s), "0x"), "0") }
	return trim(a) == trim(b)
}
