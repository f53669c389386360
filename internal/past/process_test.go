package past

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/history/held"
)

// What a process held: from the snapshots, and change by change as soon as those
// are known.
func TestProcessPast(t *testing.T) {
	end := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	host := func(at time.Time, dram uint64) *model.Snapshot {
		use := model.DeviceUse{Device: 0}
		use.Memory[model.DRAM] = model.BoundBytes(dram, model.AtLeast)
		return &model.Snapshot{Time: at, Processes: []model.Process{{PID: 7, StartTicks: 1, Devices: []model.DeviceUse{use}}}}
	}
	since := end.Add(-30 * time.Second)
	changes := func(_ context.Context, _ int, _ uint64, from, to time.Time, n int) ([]held.Point, time.Time, time.Duration) {
		if from.Before(since) {
			from = since
		}
		line := held.NewLine(from, to)
		for i := range 31 {
			s := host(since.Add(time.Duration(i)*time.Second), uint64(1+i/29))
			line.See(s.Time, held.By(s.Processes, s.Processes[0].PID, 0))
		}
		list, step := line.Points(n)
		return list, since, step
	}
	h := serve(t, Memory{Held: changes, Past: func(at time.Time) (time.Time, []byte, error) {
		at = at.Truncate(10 * time.Second)
		return at, wire.Append(nil, host(at, 9)), nil
	}})
	for name, c := range map[string]struct {
		minutes int
		want    string
	}{
		"changes only": {0, "-20s≥1 -1s≥2 0s≥2"},
		"both":         {1, "-1m0s≥9 -50s≥9 -40s≥9 -30s≥1 -1s≥2 0s≥2"},
	} {
		t.Run(name, func(t *testing.T) {
			start := end.Add(-time.Duration(c.minutes) * time.Minute)
			if c.minutes == 0 {
				start = end.Add(-20 * time.Second)
			}
			q := url.Values{"start": {start.Format(time.RFC3339)}, "end": {end.Format(time.RFC3339)}, "points": {"60"}, "start_ticks": {"1"}}
			status, body := h.get("/v1/processes/7/history?" + q.Encode())
			var a pastAnswer
			if err := json.Unmarshal([]byte(body), &a); err != nil || status != 200 {
				t.Fatalf("status %d, %v: %s", status, err, body)
			}
			got := ""
			for i, p := range a.Points {
				if i > 0 {
					got += " "
				}
				d := p.Devices[0].Pools["dram"]
				got += fmt.Sprint(p.Time.Sub(end)) + map[string]string{"at_least": "≥"}[d.Bound] + fmt.Sprint(d.Bytes)
			}
			if got != c.want || a.Since == nil || !a.Since.Equal(end.Add(-30*time.Second)) || a.Step != 0 {
				t.Errorf("%s: %q since %v, want %q", name, got, a.Since, c.want)
			}
		})
	}
}
