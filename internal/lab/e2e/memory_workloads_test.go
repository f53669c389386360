package e2e

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestMetalWorkloads: what ttmon-sim starts by itself accounts as ordered, in
// containers and for other users, too.
func TestMetalWorkloads(t *testing.T) {
	hermetic.NeedOtherUsers(t)
	h := start(t, sim.Options{Boards: "n300,p150a", Procs: []string{
		"name=llama,devices=0,kind=metal,dram=2G,l1=30M,l1_small=1M,trace=5M,cb=64K",
		"name=boxed,devices=1,kind=metal,layout=4,dram=1G,pidns,own-shm",
		"name=other,devices=1,kind=metal,dram=3G,user=1000",
	}})
	s := snapshot(t, h)
	for _, ch := range device(t, s, 0).Chips {
		wantBytes(t, "DRAM of a chip of the n300", ch.Memory.Pools[model.DRAM].Used, 2<<30)
	}
	wantBytes(t, "TRACE of both", device(t, s, 0).Memory.Pools[model.Trace].Used, 10<<20)
	wantBytes(t, "DRAM of the p150", device(t, s, 1).Memory.Pools[model.DRAM].Used, 4<<30)
	for name, want := range map[string]uint64{"llama": 4 << 30, "boxed": 1 << 30, "other": 3 << 30} {
		t.Run(name, func(t *testing.T) {
			p := only(t, s, name)
			wantBytes(t, "DRAM of "+name, p.Devices[0].Memory[model.DRAM], want)
			if p.PID == 1 {
				t.Errorf("%s has the host's init's pid", name)
			}
		})
	}
}
