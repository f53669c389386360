package waiting

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// waits is a host on which a process has waited for its chip for 41 s.
func waits() (*model.Snapshot, *model.Process) {
	s := sample.One()
	p := sample.Serve(4242, sample.Use(&s.Devices[0], 1<<30, 0))
	d := &s.Devices[0]
	d.HeartbeatAge = model.Value(0.4)
	d.PCIe.ToDeviceRate, d.PCIe.FromDeviceRate = model.Value(0.0), model.Value(0.0)
	p.CPU, d.Power = model.Value(99.0), model.Value(18.0)
	at := func(seconds int) time.Time { return s.Time.Add(-time.Duration(seconds) * time.Second) }
	p.Work = model.ProcessWork{
		Watched: true,
		Host:    model.HostWork{Enqueued: 1205, LastEnqueue: at(42), LastName: "AllGather", WaitingSince: at(41), WaitingFor: model.WaitsForFinish, LastFinish: at(60)},
		Chips: []model.ChipWork{{
			Device: d.Index, ChipID: 7, LastName: "LayerNorm\x1b[31m", LastRecord: at(43), Longest: 0.8, LongestName: "Matmul",
			Work: model.NoWork(model.WorkSilent).WithTotals(1e9, 1204, model.Exact),
		}},
	}
	s.Processes = []model.Process{p}
	return s, &s.Processes[0]
}

// suspected is the same where ttmond has judged it.
func suspected() (*model.Snapshot, *model.Process) {
	s, p := waits()
	s.Assessed = true
	s.Conditions = append(s.Conditions, model.Condition{
		Kind: model.ConditionStuck, Level: model.Warning, Device: s.Devices[0].Index, Process: p.ID(), Since: s.Time.Add(-41 * time.Second), Cause: model.WaitsInFinish,
		Facts: []model.Fact{{Kind: model.FactSilence, Value: 41, Limit: 0.8}, {Kind: model.FactWaited, Value: 41}, {Kind: model.FactNeeded, Value: 9.6}, {Kind: model.FactResting, Value: 1, Limit: 1}, {Kind: model.FactWorkPower, Value: 18, Limit: 61}},
	})
	return s, p
}

// judged changes what the judge went by.
func judged(s *model.Snapshot, facts ...model.Fact) {
	s.Conditions[len(s.Conditions)-1].Facts = facts
}

func TestAppend(t *testing.T) {
	var out []byte
	show := func(name string, o lines.Options, change func(s *model.Snapshot, p *model.Process)) {
		s, p := waits()
		if name == "stuck" || strings.HasPrefix(name, "stuck,") {
			s, p = suspected()
		}
		if change != nil {
			change(s, p)
		}
		out = append(append(append(out, "== "...), name...), '\n')
		out = append(Append(out, s, p, o), '\n')
	}
	show("stuck", lines.Options{}, nil)
	show("stuck, 60 columns of ASCII", lines.Options{Width: 60, ASCII: true}, nil)
	silent := model.Fact{Kind: model.FactSilence, Value: 641, Limit: 0.8}
	show("stuck, power unknown", lines.Options{}, func(s *model.Snapshot, _ *model.Process) {
		s.Devices[0].Power = model.Missing[float64](model.Absent, "")
		judged(s, silent, model.Fact{Kind: model.FactNeeded, Value: 600}, model.Fact{Kind: model.FactResting, Limit: 1})
	})
	show("stuck, on a busy host, of some chips power known", lines.Options{}, func(s *model.Snapshot, _ *model.Process) {
		judged(s, silent, model.Fact{Kind: model.FactNeeded, Value: 28.8}, model.Fact{Kind: model.FactResting, Value: 1, Limit: 2})
	})
	show("stuck, found by an older release", lines.Options{}, func(s *model.Snapshot, _ *model.Process) { judged(s, silent) })
	show("never watched", lines.Options{}, nil)
	show("not for long", lines.Options{}, func(s *model.Snapshot, p *model.Process) { p.Work.Chips[0].LastRecord = s.Time.Add(-5 * time.Second) })
	show("not for long, power unknown", lines.Options{}, func(s *model.Snapshot, _ *model.Process) {
		s.Devices[0].Power = model.Missing[float64](model.Absent, "")
	})
	show("nothing enqueued, no heartbeat", lines.Options{}, func(s *model.Snapshot, p *model.Process) {
		p.Work.Host = model.HostWork{}
		s.Devices[0].HeartbeatAge = model.Value(5.0)
	})
	show("idle", lines.Options{}, func(_ *model.Snapshot, p *model.Process) { p.Work.Host.WaitingSince = time.Time{} })
	show("stopped", lines.Options{}, func(_ *model.Snapshot, p *model.Process) { p.Condition = model.Stopped })
	show("starved", lines.Options{}, func(_ *model.Snapshot, p *model.Process) { p.CPU = model.Value(0.3) })
	show("a hung chip", lines.Options{}, func(s *model.Snapshot, _ *model.Process) { s.Devices[0].State = model.StateHung })
	show("no libttmon", lines.Options{}, func(_ *model.Snapshot, p *model.Process) { p.Work = model.ProcessWork{} })
	golden.Check(t, "testdata/waiting.txt", out)
	if strings.Contains(string(out), "\x1b") {
		t.Error("a name of a process reaches the terminal as it is")
	}
}

func TestJSON(t *testing.T) {
	s, p := suspected()
	var got struct {
		Schema  string  `json:"schema"`
		Verdict string  `json:"verdict"`
		Silent  float64 `json:"silent_s"`
		Needed  float64 `json:"needed_s"`
		Chips   []struct {
			Last string `json:"last_completed"`
		} `json:"chips"`
	}
	if err := json.Unmarshal(AppendJSON(nil, s, p), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != Schema || got.Verdict != "stuck" || got.Silent != 41 || got.Needed != 9.6 || len(got.Chips) != 1 || !strings.HasPrefix(got.Chips[0].Last, "LayerNorm") {
		t.Errorf("%+v", got)
	}
}
