package ledger

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

func TestFigures(t *testing.T) {
	var u Use
	u.Bytes[model.DRAM], u.Peak[model.DRAM] = 100, 200
	u.Peak[model.CB] = 7
	b := u.figures(nil)
	if !b[model.DRAM].Exactly(100) || !b[model.L1].Exactly(0) {
		t.Errorf("pools that every client reports: %+v", b)
	}
	if !b[model.CB].Exactly(0) || b[model.Kernel].Known() {
		t.Errorf("circular buffers were reported, kernels never: %+v", b)
	}
	late := u.figures([]model.Doubt{{Kind: model.ReportLate}})
	if _, bound, _ := late[model.DRAM].Best(); bound != model.AtLeast || late[model.L1].Known() {
		t.Errorf("a late report: %+v", late)
	}
}

func TestReportDoubts(t *testing.T) {
	a := Account{Ticks: 50, Since: time.Unix(1_790_000_000, 0)}
	for name, c := range map[string]struct {
		h    Holding
		want []model.DoubtKind
	}{
		"heard from the start":   {Holding{Info: Info{ProcessID: model.ProcessID{PID: 5, StartTicks: 60}}}, nil},
		"older than the account": {Holding{Info: Info{ProcessID: model.ProcessID{PID: 5, StartTicks: 40}}}, []model.DoubtKind{model.ReportLate}},
		"of the same tick":       {Holding{Info: Info{ProcessID: model.ProcessID{PID: 5, StartTicks: 50}}}, []model.DoubtKind{model.ReportLate}},
		"too many buffers and noise": {
			Holding{Info: Info{ProcessID: model.ProcessID{PID: 5, StartTicks: 60}}, Counters: Counters{OverLimit: 1, RejectedFrames: 2}},
			[]model.DoubtKind{model.ReportOverLimit, model.ReportRejected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.h.doubts(a)
			if len(got) != len(c.want) {
				t.Errorf("%s: %+v, want %v", name, got, c.want)
				return
			}
			for i := range got {
				if got[i].Kind != c.want[i] {
					t.Errorf("%s: %+v, want %v", name, got, c.want)
				}
			}
		})
	}
}

func TestClaims(t *testing.T) {
	l := New(Options{})
	if set := l.Claims(Account{}, func(model.ProcessID) string { return "" }); len(set.Held) != 0 || set.Source != model.FromSocket {
		t.Errorf("an empty ledger claims %+v", set)
	}
}
