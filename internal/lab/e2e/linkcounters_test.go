package e2e

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestLinkCounters: with firmware = full the counters of Ethernet cores are in every
// view of links, and a link that a reset cost says that it was up before.
func TestLinkCounters(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300", UMDDump: true})
	library, err := ttnn.Imitate(t.TempDir(), ttnn.Newest)
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, h, "--firmware", "full", "--no-uprobe")
	root := func(args ...string) result { return runIn(t, h, args...) }
	port := func(s *model.Snapshot) model.EthernetPort {
		for _, p := range device(t, s, 0).Telemetry.Ports {
			if p.Channel == 8 {
				return p
			}
		}
		return model.EthernetPort{}
	}
	ctl(t, h, "run", "name=job,devices=0,kind=ledger,dram=1G,lib="+library)
	d.until("the Ethernet cores were read", root, func(s *model.Snapshot) bool { p := port(s); return p.Retrains.Known() && p.Expected() })
	ctl(t, h, "retrain", "0", "8")
	got := d.until("the link has trained again", root, func(s *model.Snapshot) bool { return port(s).Retrains.V == 1 })
	if p := port(got); p.Uncorrected.V != 3 || p.Corrected.V != 1000 || p.CodewordBound != model.Exact || !p.Up.V {
		t.Errorf("the port: %+v", p)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"topo", "--links"}, " 0L         8  0R         0  up                1          1000             3"},
		{[]string{"topo"}, "! 0L ↔ 0R: 1 retrain since the reset"},
		{[]string{"topo", "--json"}, `"up":true,"lost_in_reset":false,"retrains":1,"corrected_codewords":1000,"uncorrected_codewords":3`},
		{[]string{"smi", "--query-device=ethernet.retrains,ethernet.codewords.uncorrected", "--format=csv,noheader"}, "1, 3"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			if r := runIn(t, h, append(tt.args, "--daemon", d.api)...); !strings.Contains(r.out, tt.want) {
				t.Errorf("no %q in:\n%s", tt.want, r.out)
			}
		})
	}

	ctl(t, h, "cut", "0", "9")
	ctl(t, h, "join", "0", "9")
	d.until("both links are up", root, func(s *model.Snapshot) bool { return port(s).Up.V && len(device(t, s, 0).DownPorts()) == 0 })
	ctl(t, h, "reset", "0", "block=100ms", "window=4s")
	d.until("the reset is seen", root, func(s *model.Snapshot) bool { return device(t, s, 0).State == model.StateResetting })
	ctl(t, h, "cut", "0", "8")
	d.until("the link that the reset cost", root, func(s *model.Snapshot) bool { p := port(s); return p.LostInReset() })
	if r := runIn(t, h, "topo", "--links", "--daemon", d.api); !strings.Contains(r.out, "up before the reset") {
		t.Errorf("topo --links does not say it:\n%s", r.out)
	}
}
