package server

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// remembered is a history of four devices, ten minutes of it, a sample a second.
// In the last two minutes device 2 is throttled, and loses a quarter of its clock.
func remembered(t *testing.T) (*disk.Store, time.Time) {
	t.Helper()
	dir := t.TempDir()
	s, err := disk.Open(disk.Options{Dir: filepath.Join(dir, "disk"), MemoryDir: filepath.Join(dir, "memory"), FineFor: time.Hour, CoarseFor: 24 * time.Hour, MaxBytes: 1 << 30, MaxSeries: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := prom.NewWalker(prom.Options{Version: "test"})
	end := time.Now().Truncate(time.Second)
	for i := range 600 {
		snap := tuitest.Well(4, i%40)
		snap.Time = end.Add(time.Duration(i-600) * time.Second)
		for k := range snap.Devices {
			snap.Devices[k].AICLK = model.Value(1000.0)
		}
		if d := &snap.Devices[2]; i >= 480 {
			d.AICLK = model.Value(750.0)
			snap.Conditions = append(snap.Conditions, model.Condition{Kind: model.ConditionThrottled, Device: 2, Cause: model.ByHeat})
		}
		w.Observe(snap)
		s.AddSnapshot(func(emit prom.Emit) { w.Walk(snap, nil, emit) })
		s.Append(snap.Time)
	}
	return s, end
}

func TestChanged(t *testing.T) {
	s, end := remembered(t)
	c := newComparer(s)
	a, err := c.find(context.Background(), end.Add(-2*time.Minute), end)
	if err != nil {
		t.Fatal(err)
	}
	printed := string(text.AppendChanged(nil, a, 0))
	if len(a.Changes) == 0 || a.Series < 50 || a.Away || a.Partial {
		t.Fatalf("changes: %s", printed)
	}
	var clock *changed.Change
	for i := range a.Changes {
		x := &a.Changes[i]
		if x.Metric == "clocks.ai" {
			clock = x
		}
		if x.Device != nil && *x.Device != 2 {
			t.Errorf("%s of device %d has a score of %v", x.Metric, *x.Device, x.Score)
		}
	}
	if clock == nil || clock.Score != 25 || math.Abs(clock.Before.Mean-1000) > 1e-6 || math.Abs(clock.During.Mean-750) > 1e-6 || clock.Unit != "MHz" || clock.BusID == "" {
		t.Errorf("the clock: %+v\n%s", clock, printed)
	}
	// Before the change nothing had changed; and where nothing was sampled there is
	// nothing to compare.
	if a, err = c.find(context.Background(), end.Add(-5*time.Minute), end.Add(-3*time.Minute)); err != nil || len(a.Changes) != 0 {
		t.Errorf("%v\n%s", err, text.AppendChanged(nil, a, 0))
	}
	if a, err = c.find(context.Background(), end.Add(-3*time.Hour), end.Add(-2*time.Hour)); err != nil || !a.Away {
		t.Errorf("%v\n%s", err, text.AppendChanged(nil, a, 0))
	}
	c.slot <- struct{}{}
	if _, err := c.find(context.Background(), end.Add(-time.Minute), end); err == nil {
		t.Error("two questions are answered at a time")
	}
}
