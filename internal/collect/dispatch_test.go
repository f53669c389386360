package collect

import (
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestDispatch: what programs report and what the dispatch cores account for are
// held against each other, a sample of the firmware every five snapshots; where
// they contradict each other for long, the figure says so.
func TestDispatch(t *testing.T) {
	lossy := func(w *claim.Work) { w.Lossless = false } // "at least"
	for name, tt := range map[string]struct {
		reported float64
		how      func(*claim.Work)
		dispatch []float64 // a sample each
		want     []model.Bound
	}{
		"they agree":                 {0.5, nil, []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, []model.Bound{0, 0, 0, 0, 0, 0}},
		"nearly":                     {0.5, nil, []float64{0.6, 0.4, 0.6, 0.4, 0.6, 0.4}, []model.Bound{0, 0, 0, 0, 0, 0}},
		"the cores say more":         {0.5, nil, []float64{0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, []model.Bound{0, 0, 0, model.Unsure, model.Unsure, model.Unsure}},
		"the cores say less":         {0.9, nil, []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, []model.Bound{0, 0, 0, model.Unsure, model.Unsure, model.Unsure}},
		"more than at least":         {0.5, lossy, []float64{0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, slices.Repeat([]model.Bound{model.AtLeast}, 6)},
		"less than at least":         {0.9, lossy, []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, []model.Bound{model.AtLeast, model.AtLeast, model.AtLeast, model.Unsure, model.Unsure, model.Unsure}},
		"once":                       {0.5, nil, []float64{0.5, 0.5, 0.9, 0.5, 0.9, 0.9}, []model.Bound{0, 0, 0, 0, 0, 0}},
		"they come to agree":         {0.5, nil, []float64{0.9, 0.9, 0.9, 0.9, 0.5, 0.5}, []model.Bound{0, 0, 0, model.Unsure, 0, 0}},
		"the cores are not read":     {0.5, nil, []float64{-1, -1, -1, -1, -1, -1}, []model.Bound{0, 0, 0, 0, 0, 0}},
		"they are no longer read":    {0.5, nil, []float64{0.9, 0.9, 0.9, 0.9, -1, 0.9}, []model.Bound{0, 0, 0, model.Unsure, 0, 0}},
		"idle, and the cores work":   {0, func(w *claim.Work) { w.LastRecord = workStart }, []float64{0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, []model.Bound{0, 0, 0, model.Unsure, model.Unsure, model.Unsure}},
		"idle, and so are the cores": {0, func(w *claim.Work) { w.LastRecord = workStart }, []float64{0, 0, 0, 0, 0, 0}, []model.Bound{0, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &workHost{now: workStart}
			busy := time.Second
			step := func() *model.Snapshot {
				busy += time.Duration(tt.reported * float64(time.Second))
				set := h.reported(busy, uint64(busy), tt.how)
				if tt.reported == 0 {
					set = settled(set)
				}
				return h.sweep(time.Second, set)
			}
			step()
			step()
			for i, share := range tt.dispatch {
				h.telemetry = model.Telemetry{State: model.TelemetryOK, ReadAt: h.now, Dispatch: model.Dispatch{Busy: model.Value(share)}}
				if share < 0 {
					h.telemetry = model.Telemetry{}
				}
				for range 5 {
					step()
				}
				w := h.snap.Devices[0].Chips[0].Work
				if !w.Busy.Known() || w.Bound != tt.want[i] || (w.Cause == model.WorkDispatch) != (tt.want[i] == model.Unsure) {
					t.Errorf("sample %d: %+v, want %s", i, w, tt.want[i])
				}
				if d := h.snap.Devices[0].Work; tt.want[i] == model.Unsure && (d.Bound != model.Unsure || d.Cause != model.WorkDispatch) {
					t.Errorf("sample %d: the board: %+v", i, d)
				}
			}
		})
	}
}
