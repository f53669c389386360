package e2e

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Where programs cannot be recorded one by one, a recording and its recorder say why:
// of the simulator's work only sums are known.
func TestProgramsNotRecorded(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h, "--no-uprobe")
	ctl(t, h, "run", "name=serve,cmd=python3 serve.py,devices=0,kind=ledger,dram=1G,work=matmul 2ms x5; softmax 500us")
	ask := func(args ...string) result { return runIn(t, h, args...) }
	d.until("busy", ask, func(s *model.Snapshot) bool { return s.Device(0).Work.Busy.Known() })
	for _, tt := range []struct {
		name, from, why string
	}{
		{"a ttmond that watches nothing", "--daemon=" + d.api, "processes are not watched by this ttmond"},
		{"no ttmond", "--direct", "no ttmond runs on this host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.ttrec")
			got := ask("record", "--programs", "-o", file, "--duration", "1500ms", "--interval", "500ms", tt.from)
			if got.code != 0 || !strings.Contains(got.err, tt.why) || strings.Contains(got.err, "recorded 0 programs") {
				t.Errorf("exit %d: %s", got.code, got.err)
			}
			r, err := recording.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			said := false
			for c := r.Begin(); ; {
				x, err := c.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				said = said || x.Kind == recording.KindEvent && strings.Contains(x.Event.Text, tt.why)
			}
			if !said {
				t.Error("the recording does not say why it has no programs")
			}
		})
	}
	if got := ask("run", "--programs", "--", "true"); got.code != 2 || !strings.Contains(got.err, "--record=FILE") {
		t.Errorf("without a recording: %+v", got)
	}
}
