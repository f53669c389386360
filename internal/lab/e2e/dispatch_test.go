package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestDispatch holds two accounts of the same chip against each other: what
// libttmon reports of its programs, and what ttmond reads of its dispatch cores.
// Where they contradict each other every view says so, and no longer when they
// agree again.
func TestDispatch(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	library, err := ttnn.Imitate(t.TempDir(), ttnn.Newest)
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, h, "--firmware", "full", "--no-uprobe")
	root := func(args ...string) result { return runIn(t, h, args...) }
	ctl(t, h, "run", "name=job,devices=0,kind=ledger,dram=1G,lib="+library+",work=matmul 10ms x1; idle 10ms")
	ctl(t, h, "dispatch", "0", "0.5")
	within := func(r model.Reading[float64], want, by float64) bool {
		return r.Known() && r.V > want-by && r.V < want+by
	}
	near := func(r model.Reading[float64], want float64) bool { return within(r, want, 0.1) }
	s := d.until("both accounts are there, and agree", root, func(s *model.Snapshot) bool {
		one := device(t, s, 0)
		return near(one.Telemetry.Dispatch.Busy, 0.5) && near(one.Chips[0].Work.Busy, 0.5)
	})
	if n := device(t, s, 0).Telemetry.Dispatch.Workers; n.V != 120 {
		t.Errorf("workers %+v", n)
	}
	var last time.Time
	samples := 0
	d.until("five more samples were taken", root, func(s *model.Snapshot) bool {
		one := device(t, s, 0)
		if one.Chips[0].Work.Cause == model.WorkDispatch {
			t.Errorf("they agree: %+v, %+v", one.Chips[0].Work, one.Telemetry.Dispatch)
		}
		if !one.Telemetry.ReadAt.Equal(last) {
			last, samples = one.Telemetry.ReadAt, samples+1
		}
		return samples > 5
	})
	ctl(t, h, "dispatch", "0", "0.05") // libttmon has seen half of the time, at least
	s = d.until("they contradict each other", root, func(s *model.Snapshot) bool { return device(t, s, 0).Work.Cause == model.WorkDispatch })
	if one := device(t, s, 0); one.Work.Bound != model.Unsure || !within(one.Work.Busy, 0.5, 0.25) || // a snapshot on demand has programs of 10 ms in a window of 100
		!near(one.Telemetry.Dispatch.Busy, 0.05) {
		t.Errorf("%+v, %+v", one.Work, one.Telemetry.Dispatch)
	}
	for _, args := range [][]string{{"smi", "-q"}, {"smi", "--json"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if r := runIn(t, h, append(args, "--daemon", d.api)...); !strings.Contains(r.out, model.WorkDispatch.Why()) {
				t.Errorf("%v does not say why:\n%s", args, r.out)
			}
		})
	}
	ctl(t, h, "dispatch", "0", "0.5")
	d.until("they agree again", root, func(s *model.Snapshot) bool {
		one := device(t, s, 0)
		return one.Work.Cause != model.WorkDispatch && near(one.Telemetry.Dispatch.Busy, 0.5)
	})
	ctl(t, h, "dispatch", "0", "off")
	d.until("the program has closed the chip", root, func(s *model.Snapshot) bool { return !device(t, s, 0).Telemetry.Dispatch.Busy.Known() })
}
