package e2e

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestSimulatedHostsAreApart: a simulated host shows no process of the machine
// that it runs on, nor of another simulated host.
func TestSimulatedHostsAreApart(t *testing.T) {
	t.Parallel()
	other := start(t, sim.Options{Boards: "p150a"})
	ctl(t, other, "run", "name=other,devices=0,kind=metal,dram=1G")
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=own,devices=0,kind=metal,dram=512M")
	d := startDaemon(t, h)
	s := d.until("its own program", func(args ...string) result { return runIn(t, h, args...) }, func(s *model.Snapshot) bool {
		return len(s.Processes) > 0 && s.Processes[0].Name.V == "own"
	})
	if len(s.Processes) != 1 || len(s.Unmatched) != 0 {
		t.Errorf("processes %+v, chips of no device %+v", s.Processes, s.Unmatched)
	}
}
