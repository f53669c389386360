package top

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
)

func TestKill(t *testing.T) {
	st := open(t, 4, 120, 40)
	st.keys("down", "f9")
	if !st.has("Send to 183377  alice  python3 bench.py") {
		t.Errorf("the dialog does not name the process:\n%s", st.draw())
	}
	if !st.has("PAUSED") {
		t.Errorf("the list stands still and nothing says so:\n%s", st.draw())
	}
	// While the dialog is open, the list stands still, whatever happens.
	before := st.s.shown
	st.run(30)
	if st.s.shown != before || st.s.live == before {
		t.Error("the list is not frozen")
	}
	st.effects = nil
	st.keys("9", "enter")
	if !st.has("Send SIGKILL?") || !st.has("183377  alice") {
		t.Errorf("no confirmation:\n%s", st.draw())
	}
	if len(st.effects) != 0 {
		t.Fatalf("killed without asking: %v", st.effects)
	}
	st.keys("enter", " ", "x") // nothing but y means yes
	if len(st.effects) != 0 {
		t.Fatalf("killed by another key: %v", st.effects)
	}
	st.keys("y")
	want := []tui.Effect{act.Kill{Signal: syscall.SIGKILL, Targets: []act.Target{{PID: 183377, StartTicks: 183377 * 7, Name: "python3 bench.py"}}}}
	if diff := cmp.Diff(want, st.effects); diff != "" {
		t.Error(diff)
	}
	if st.s.frozen || st.s.shown != st.s.live {
		t.Error("still frozen")
	}
	st.send(act.Killed{Kill: want[0].(act.Kill), Errs: []error{nil}})
	if !st.has("SIGKILL sent to 183377") {
		t.Errorf("no word about it:\n%s", st.draw())
	}
	st.send(act.Killed{Kill: want[0].(act.Kill), Errs: []error{errors.New("operation not permitted")}})
	if !st.has("SIGKILL not sent to 183377: operation not permitted") {
		t.Errorf("no word about the failure:\n%s", st.draw())
	}
}

func TestKillTagged(t *testing.T) {
	st := open(t, 4, 120, 40)
	st.keys(" ", " ", "f9")
	if !st.has("Send to 2 processes") {
		t.Fatal(st.draw())
	}
	st.effects = nil
	st.keys("enter", "y")
	k := st.effects[0].(act.Kill)
	if len(k.Targets) != 2 || k.Signal != syscall.SIGTERM || k.Targets[0].PID != 182034 || k.Targets[1].PID != 183377 {
		t.Errorf("got %+v", k)
	}
	// A tag outlives neither its process nor a filter that hides it.
	st = open(t, 4, 120, 40)
	st.keys(" ")
	if st.s.proc.setFilter(st.s, "user=bob") != nil {
		t.Fatal("filter")
	}
	st.effects = nil
	st.keys("f9")
	if st.s.dialog != nil {
		t.Error("a process that is not shown can be killed")
	}
	st.n = 1
	st.run(1)
	st.n = 0
	st.run(1)
	if len(st.s.proc.tagged) != 0 {
		t.Error("the tag of a process that is gone stays")
	}
}

func TestNoKill(t *testing.T) {
	for name, s := range map[string]*stage{
		"read-only": open(t, 4, 120, 40, func(c *config.Config) { c.Top.ReadOnly = true }),
		"remote": func() *stage {
			st := open(t, 4, 120, 40)
			st.s.o.NoKill = "processes of another host cannot be signalled from here"
			return st
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(s.draw(), "Kill") {
				t.Error("the footer offers to kill")
			}
			s.keys("f9")
			if s.s.dialog != nil || s.s.flash.text == "" {
				t.Errorf("F9 opens %T and says %q", s.s.dialog, s.s.flash.text)
			}
			s.keys("enter", "f9")
			if s.s.dialog != nil {
				t.Errorf("F9 on the process page opens %T", s.s.dialog)
			}
		})
	}
}
