package text_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/text"
)

// working is a host whose chips report: one by name and to the digit, one in
// part, one not at all, and a job that may be stuck.
func working() *model.Snapshot {
	s := sample.Four()
	operation := func(name string, share, rate float64, mean time.Duration) model.Operation {
		return model.Operation{
			Name: name, Calls: uint64(rate) * 60, Time: uint64(rate) * 60 * uint64(mean), Longest: uint64(5 * mean),
			Share: model.Value(share), Rate: model.Value(rate),
		}
	}
	s.Devices[0].Work = model.Work{Busy: model.Value(0.91), Window: 1}
	s.Devices[1].Work = model.Work{Busy: model.Value(0.183), Bound: model.AtLeast, Cause: model.WorkLossy, Window: 1}
	s.Devices[2].Work = model.NoWork(model.WorkNoIOMMU)
	s.Devices[3].Work = model.Work{Busy: model.Value(0.0), Window: 1}
	p := &s.Processes[0]
	p.Work = model.ProcessWork{Watched: true, Chips: []model.ChipWork{{
		Device: 0, Chip: "L", LastName: "LayerNorm", LastRecord: sample.Time,
		Work: model.Work{Busy: model.Value(0.91), Late: model.Value(0.09)},
		Operations: []model.Operation{
			operation("MatmulDeviceOperation", 0.412, 1204, 342*time.Microsecond),
			operation("ScaledDotProductAttention", 0.227, 301, 754*time.Microsecond),
			operation("evil\x1b[31mname", 0.0004, 2, 150*time.Nanosecond),
			{Others: 12, Calls: 5, Time: 10, Longest: 4, Share: model.Value(0.0), Rate: model.Value(0.0)},
		},
	}}}
	s.Assessed = true
	s.Conditions = []model.Condition{{
		Kind: model.ConditionStuck, Level: model.Warning, Device: 0, Process: p.ID(), Cause: model.WaitsInFinish, Remedy: model.RemedyOperations,
		Facts: []model.Fact{{Kind: model.FactSilence, Value: 41, Limit: 0.8}, {Kind: model.FactWaited, Value: 41}},
	}}
	return s
}

func TestOps(t *testing.T) {
	s := working()
	var b strings.Builder
	for _, c := range []struct {
		name  string
		which metric.OpChoice
		width int
	}{
		{"all", metric.OpChoice{Sort: "share"}, 100},
		{"80 columns", metric.OpChoice{Sort: "share"}, 80},
		{"the slowest", metric.OpChoice{Sort: "mean", Most: 2}, 100},
		{"one name", metric.OpChoice{Filter: "MATMUL"}, 100},
		{"another process", metric.OpChoice{PID: 7}, 100},
	} {
		b.WriteString("-- " + c.name + " --\n")
		b.Write(text.AppendOps(nil, s, c.which, text.Options{Options: lines.Options{Width: c.width}}))
	}
	b.WriteString("-- json --\n")
	b.Write(text.AppendOpsJSON(nil, s, metric.OpChoice{Sort: "calls"}))
	golden.Check(t, "testdata/ops.txt", []byte(b.String()))
}

// TestOpsBounds: a share says how far it can be trusted, as busy does. Of what may
// have run before the window it is not known of which operation it was.
func TestOpsBounds(t *testing.T) {
	for _, c := range []struct {
		bound             model.Bound
		cause             model.WorkCause
		share, late, json string
	}{
		{model.Exact, "", "22.7 %", "9.0 %", "exact"},
		{model.AtLeast, model.WorkLossy, "≥22.6 %", "~9.0 %", "at_least"},
		{model.AtLeast, model.WorkUnreported, "~22.7 %", "~9.0 %", "unsure"},
		{model.Unsure, model.WorkTooMuch, "~22.7 %", "~9.0 %", "unsure"},
	} {
		t.Run(c.json+" "+string(c.cause), func(t *testing.T) {
			s := working()
			chip := &s.Processes[0].Work.Chips[0]
			chip.Work.Bound, chip.Work.Cause = c.bound, c.cause
			chip.Operations = []model.Operation{{Name: "Matmul", Calls: 1, Time: 1, Longest: 1, Share: model.Value(0.22699), Rate: model.Value(1.0)}}
			rows := metric.OpChoice{}.Rows(s)
			share := func(o *metric.Op) string { return sheet.Cells(metric.Operations(), s, o)[0].Text }
			if len(rows) != 2 || share(rows[0]) != c.share || share(rows[1]) != c.late {
				t.Errorf("%d rows, want %q and %q", len(rows), c.share, c.late)
			}
			if got := string(text.AppendOpsJSON(nil, s, metric.OpChoice{})); !strings.Contains(got, `"share_bound":"`+c.json+`"`) {
				t.Error(got)
			}
		})
	}
}
