package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// What led to an alert is kept: the chip as it was before it hung, and after,
// and the alert itself. ttmon replay shows it.
func TestAlertIsRecorded(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n150"})
	var r receiver
	d := alerting(t, h, &r, "")
	d.until("there is something before it", func(args ...string) result { return runIn(t, h, args...) }, func(s *model.Snapshot) bool {
		return len(s.Devices) == 2 && s.Devices[1].State == model.StateOK
	})
	ctl(t, h, "hang", "1")
	r.await(t, 1)
	var file string
	var k keptAlert
	await(t, "a recording with the chip well, and hung, and the alert", func() bool {
		list, _ := filepath.Glob(filepath.Join(filepath.Dir(d.api), "state/recordings/*.ttrec"))
		if len(list) != 1 {
			return false
		}
		file = list[0]
		k = readKept(t, file)
		return k.states[model.StateOK] > 0 && k.states[model.StateHung] > 0 && len(k.alerts) > 0
	})
	if name, ok := strings.CutPrefix(k.reason, "alert "); !ok || !strings.HasPrefix(k.alerts[0], name+": ") || !strings.Contains(k.alerts[0], "device 1 ") {
		t.Errorf("kept for %q; alerts %q", k.reason, k.alerts)
	}
	if out := runIn(t, h, "replay", file, "events"); !strings.Contains(out.out, k.alerts[0]) {
		t.Errorf("ttmon replay: %s%s", out.out, out.err)
	}
	if out := runIn(t, h, "replay", file, "--at", "start", "smi"); !strings.Contains(out.out, "n150") || strings.Contains(out.out, "hung") {
		t.Errorf("at the beginning:\n%s%s", out.out, out.err)
	}
}

// keptAlert is what a recording around an alert holds of device 1.
type keptAlert struct {
	states map[model.State]int
	alerts []string
	reason string
}

func readKept(t *testing.T, file string) keptAlert {
	t.Helper()
	rec, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	c, k := rec.Begin(), keptAlert{states: map[model.State]int{}}
	for x, err := c.Next(); err == nil; x, err = c.Next() {
		switch {
		case x.Kind == recording.KindSnapshot:
			s, err := c.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			k.states[s.Devices[1].State]++
		case x.Kind == recording.KindEvent && x.Event.Kind == "alert":
			k.alerts = append(k.alerts, x.Event.Text)
		}
	}
	k.reason = c.Meta.Reason
	return k
}
