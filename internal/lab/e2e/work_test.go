package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// A job works, hangs and works again: what the chips do is shown, the suspicion
// comes with its evidence, and goes.
func TestWorkAndStuck(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "2xp150a", Frozen: true})
	d := startDaemon(t, h)
	d.startServer()
	ask := func(args ...string) result { return runIn(t, h, args...) }
	pid, err := strconv.Atoi(strings.TrimSpace(ctl(t, h, "run", "name=serve,cmd=python3 serve.py,devices=0,load=0.9,kind=ledger,dram=1G,work=matmul 20ms x50; softmax 500us")))
	if err != nil {
		t.Fatal(err)
	}
	s := d.until("busy", ask, func(s *model.Snapshot) bool {
		v, ok := s.Device(0).Work.Busy.Get()
		return ok && v > 0.9
	})
	if w := s.Device(1).Work; !w.Busy.Known() || w.Busy.V != 0 {
		t.Errorf("a device that no process has open is busy: %+v", w)
	}
	has := func(want string, args ...string) {
		t.Helper()
		var got result
		for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
			if got = ask(append(args, "--daemon", d.api)...); strings.Contains(got.out, want) {
				return
			}
		}
		t.Errorf("%v: no %q in\n%s%s", args, want, got.out, got.err)
	}
	has("matmul", "ops", "--once")
	has("busy [%]", "history", "busy", "-i", "0", "--since", "5m")
	file := filepath.Join(t.TempDir(), "work.ttrec")
	if got := ask("record", "--daemon", d.api, "-o", file, "--interval", "500ms", "--duration", "3s"); got.code != 0 {
		t.Fatalf("record: %+v", got)
	}
	for view, want := range map[string]string{"ops": "matmul", "smi": "serve.py"} {
		t.Run(view, func(t *testing.T) {
			if got := ask("replay", file, "--at", "end", view, map[string]string{"ops": "--once", "smi": "--color=never"}[view]); !strings.Contains(got.out, want) {
				t.Errorf("replayed %s: no %q in\n%s%s", view, want, got.out, got.err)
			}
		})
	}
	has(`"operation":"softmax"`, "ops", "--once", "--json", "-p", strconv.Itoa(pid))
	has("no sign of being stuck", "why", strconv.Itoa(pid))
	ctl(t, h, "work", "serve", "hang")
	stuck := func(s *model.Snapshot) bool {
		for _, c := range s.Conditions {
			if c.Kind == model.ConditionStuck && c.Process.PID == pid && c.Device == 0 {
				return true
			}
		}
		return false
	}
	d.until("stuck", ask, stuck)
	has("serve.py ("+strconv.Itoa(pid)+", ", "why", strconv.Itoa(pid))
	for _, want := range []string{"stuck?", "matmul", "in a finish", "heartbeat moves", "while this job works"} {
		has(want, "why", strconv.Itoa(pid))
	}
	has(`"verdict":"stuck"`, "why", "--json", strconv.Itoa(pid))
	has("may be stuck, pid "+strconv.Itoa(pid)+" (serve.py)", "events")
	has("stuck?", "ops", "--once")
	has("ttmon why "+strconv.Itoa(pid), "smi")
	ctl(t, h, "work", "serve", "resume")
	d.until("no longer stuck", ask, func(s *model.Snapshot) bool { return !stuck(s) && s.Device(0).Work.Busy.Known() })
	has("no longer has a process that seems stuck", "events")
}
