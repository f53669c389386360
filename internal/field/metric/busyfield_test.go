package metric

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// TestBusyField: a device is measured from the first program that was reported to the end
// of who reports, also while one long program runs.
func TestBusyField(t *testing.T) {
	measured := model.Work{Busy: model.Value(0.5)}
	silent := model.NoWork(model.WorkSilent)
	for _, c := range []struct {
		name     string
		work     model.Work
		estimate bool
		want     string
	}{
		{"measured", measured, true, "busy"},
		{"one long program", silent.WithTotals(1e9, 3, model.Exact), true, "busy"},
		{"none was ever reported", silent.WithTotals(0, 0, model.Exact), true, "activity.estimate"},
		{"no process reports", model.NoWork(model.WorkNotWatched), true, "activity.estimate"},
		{"no process reports any more", model.NoWork(model.WorkNotWatched).WithTotals(1e9, 3, model.Exact), true, "activity.estimate"},
		{"nothing is known", model.NoWork(model.WorkNotWatched), false, "busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := model.Device{Work: c.work}
			if c.estimate {
				d.Activity.Ratio = model.Value(0.6)
			}
			if got := BusyField(&d).Name; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
