package proc

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// use is the part of a result that the tests compare.
type use struct {
	PID       int
	State     model.ProcessState
	Device    int
	OpenFDs   int
	Inherited bool
}

func usesOf(u Users) (out []use) {
	for _, p := range u.Processes {
		for _, d := range p.Devices {
			out = append(out, use{p.PID, p.State, d.Device, d.OpenFDs.V, d.Inherited})
		}
	}
	return out
}

func listed(device int, pids ...int) Openers {
	return Openers{Device: device, PIDs: model.Value(pids)}
}

// listedOnce is the list of a driver that names each process once.
func listedOnce(device int, pids ...int) Openers {
	o := listed(device, pids...)
	o.Once = true
	return o
}

func notListed(device int) Openers {
	return Openers{Device: device, PIDs: model.Missing[[]int](model.Absent, "driver 2.4 keeps no list")}
}

func resolve(t *testing.T, r *Reader, driver string, devices ...Openers) Users {
	t.Helper()
	u, err := r.Resolve(t.Context(), devices, driver)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func wantUses(t *testing.T, u Users, want ...use) {
	t.Helper()
	if diff := cmp.Diff(want, usesOf(u)); diff != "" {
		t.Errorf("uses differ (-want +got):\n%s", diff)
	}
}

func TestResolveOpeners(t *testing.T) {
	tr := newTree(t, 2)
	a := start(t, nil, "hold", tr.node(0), tr.node(0), tr.node(1))
	b := start(t, nil, "hold", tr.node(1))
	a.line()
	b.line()
	tr.show(a.pid, b.pid, os.Getpid())
	u := resolve(t, tr.reader(), "2.10.0", listed(0, 0, a.pid, a.pid, 0), listed(1, b.pid, a.pid, os.Getpid()))
	wantUses(t, u,
		use{0, model.Hidden, 0, 2, false},
		use{a.pid, model.Running, 0, 2, false}, use{a.pid, model.Running, 1, 1, false},
		use{b.pid, model.Running, 1, 1, false})
	if u.Coverage.Scanned {
		t.Error("scanned all descriptors although the list left nothing open")
	}
	if got := u.Processes[1]; got.Name.V == "" || got.UID.V != os.Getuid() || got.RSS.V == 0 || got.Threads.V == 0 {
		t.Errorf("the opener is not described: %+v", got)
	}
	if hidden := u.Processes[0]; hidden.Name.Status != model.Denied || hidden.Name.Why == "" {
		t.Errorf("the hidden process does not say why: %+v", hidden)
	}
}

// TestResolveListedOnce: where a list has each process once, descriptors are counted in
// /proc, and the number is missing where they cannot be.
func TestResolveListedOnce(t *testing.T) {
	tr := newTree(t, 1)
	tr.holding(70, ttInfo, 3, 4)
	u := resolve(t, tr.reader(), "3.0.0", listedOnce(0, 70, 99))
	if got := processOf(t, u, 70).Devices[0].OpenFDs; got != model.Value(2) {
		t.Errorf("the holder: %+v", got)
	}
	if got := processOf(t, u, 99).Devices[0].OpenFDs; got.Known() {
		t.Errorf("of one that has exited: %+v", got)
	}
}

// The opener exits, its child keeps the descriptor.
func TestResolveInheritor(t *testing.T) {
	tr := newTree(t, 1)
	opener := start(t, nil, "bequest", tr.node(0))
	inheritor := opener.number()
	tr.show(opener.pid, inheritor)
	r := tr.reader()
	wantUses(t, resolve(t, r, "2.10.0", listed(0, opener.pid)), use{opener.pid, model.Running, 0, 1, false})

	opener.in.Write([]byte("exit\n"))
	waitForZombie(t, opener.pid)
	u := resolve(t, r, "2.10.0", listed(0, opener.pid))
	wantUses(t, u, inOrder(use{opener.pid, model.Exited, 0, 1, false}, use{inheritor, model.Running, 0, 1, true})...)
	if p := processOf(t, u, opener.pid); p.Condition != model.Zombie {
		t.Errorf("a zombie is not called one: %q", p.Condition)
	}

	_ = opener.cmd.Wait()
	u = resolve(t, r, "2.10.0", listed(0, opener.pid))
	wantUses(t, u, inOrder(use{opener.pid, model.Exited, 0, 1, false}, use{inheritor, model.Running, 0, 1, true})...)
	gone, lives := processOf(t, u, opener.pid), processOf(t, u, inheritor)
	if !gone.Name.Known() || !gone.Cmdline.Known() || gone.RSS.Known() {
		t.Errorf("who it was is not remembered, or memory of a dead process is shown: %+v", gone)
	}
	if !doubted(lives.Devices[0].Doubts, model.InheritedFromExited) {
		t.Errorf("doubts %+v", lives.Devices[0].Doubts)
	}

	// A reader that never saw it alive.
	u = resolve(t, tr.reader(), "2.10.0", listed(0, opener.pid))
	wantUses(t, u, inOrder(use{opener.pid, model.Exited, 0, 1, false}, use{inheritor, model.Running, 0, 1, true})...)
	if p := processOf(t, u, opener.pid); p.Name.Status != model.Absent || p.Name.Why != "the process has exited" {
		t.Errorf("name of an unknown dead process: %+v", p.Name)
	}
}

// Processes that opened the device themselves do not inherit from an exited
// opener.
func TestResolveInheritorBesideOpener(t *testing.T) {
	tr := newTree(t, 2)
	opener := start(t, nil, "bequest", tr.node(0))
	inheritor := opener.number()
	own := start(t, nil, "hold", tr.node(0), tr.node(1))
	own.line()
	tr.show(opener.pid, inheritor, own.pid)
	opener.in.Write([]byte("exit\n"))
	_ = opener.cmd.Wait()
	u := resolve(t, tr.reader(), "2.10.0", listed(0, own.pid, opener.pid), listed(1, own.pid))
	wantUses(t, u, inOrder(use{opener.pid, model.Exited, 0, 1, false}, use{inheritor, model.Running, 0, 1, true},
		use{own.pid, model.Running, 0, 1, false}, use{own.pid, model.Running, 1, 1, false})...)
}

// A child of a running opener holds the opener's descriptor, not one of another
// opener that has exited.
func TestResolveChildOfALivingOpener(t *testing.T) {
	tr := newTree(t, 1)
	opener := start(t, nil, "bequest", tr.node(0))
	child := opener.number()
	tr.show(opener.pid, child)
	const dead = 1 << 21
	u := resolve(t, tr.reader(), "2.10.0", listed(0, opener.pid, dead))
	wantUses(t, u, inOrder(use{opener.pid, model.Running, 0, 1, false}, use{dead, model.Exited, 0, 1, false})...)
}

// For a device that is gone, possible unseen holders do not matter.
func TestResolveLostDevice(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	r.view.hiding = true
	lost := Openers{Device: 0, PIDs: model.Missing[[]int](model.Lost, "the device is gone")}
	u := resolve(t, r, "2.10.0", lost)
	wantUses(t, u, use{c.pid, model.Running, 0, 1, false})
	if len(u.Doubts[0]) > 0 {
		t.Errorf("it is said: %v", u.Doubts[0])
	}
}

// With driver 2.5 and 2.6, a number that no process has is an opener's that
// has exited, if all processes can be seen.
func TestResolveExitedOpenerNumbers(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	const dead = 1 << 21
	u := resolve(t, tr.reader(), "2.6.0", listed(0, c.pid, dead))
	wantUses(t, u, inOrder(use{c.pid, model.Running, 0, 1, false}, use{dead, model.Exited, 0, 1, false})...)
}

// The opener runs and has closed its descriptor: it does not use the device.
func TestResolvePassedOn(t *testing.T) {
	tr := newTree(t, 1)
	opener := start(t, nil, "bequest", tr.node(0))
	inheritor := opener.number()
	tr.show(opener.pid, inheritor)
	r := tr.reader()
	opener.send("close")
	u := resolve(t, r, "2.10.0", listed(0, opener.pid))
	wantUses(t, u, use{inheritor, model.Running, 0, 1, true})
	if note := u.Processes[0].Devices[0].Doubts; !doubted(note, model.HandedOn) {
		t.Errorf("note %+v", note)
	}
}

func TestResolveClosedMeanwhile(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	c.send("close 0")
	u := resolve(t, tr.reader(), "2.10.0", listed(0, c.pid))
	wantUses(t, u)
	if note := u.Doubts[0]; !doubted(note, model.OpenerExited) && !doubted(note, model.OpenerHandedOn) {
		t.Errorf("note %+v", note)
	}
}

// All descriptors closed, the mapping still there: the driver counts that as open.
func TestResolveMappedOnly(t *testing.T) {
	tr := newTree(t, 1)
	tr.write("dev/tenstorrent/0", strings.Repeat("x", 4096))
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	c.send("map 0")
	c.send("close 0")
	u := resolve(t, tr.reader(), "2.10.0", listed(0, c.pid))
	wantUses(t, u, use{c.pid, model.Running, 0, 1, false})
	if note := u.Processes[0].Devices[0].Doubts; !doubted(note, model.MappedOnly) {
		t.Errorf("note %+v", note)
	}
}

// Without a list, the processes that are seen to hold the node.
func TestResolveWithoutList(t *testing.T) {
	tr := newTree(t, 2)
	a := start(t, nil, "hold", tr.node(0), tr.node(0), os.DevNull)
	b := start(t, nil, "hold", tr.node(1))
	a.line()
	b.line()
	tr.show(a.pid, b.pid)
	u := resolve(t, tr.reader(), "2.4.0", notListed(0), notListed(1))
	wantUses(t, u, inOrder(use{a.pid, model.Running, 0, 2, false}, use{b.pid, model.Running, 1, 1, false})...)
	if !u.Coverage.Complete() || len(u.Doubts[0]) != 0 {
		t.Errorf("coverage %+v, doubts %v", u.Coverage, u.Doubts)
	}
}

// Drivers 2.5 and 2.6 list the opener's own idea of its pid.
func TestResolveOpenerNumbers(t *testing.T) {
	needRoot(t)
	tr := newTree(t, 1)
	inside := start(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "hold", tr.node(0))
	outside := start(t, nil, "hold", tr.node(0))
	bystander := start(t, nil, "hold", os.DevNull)
	inside.line()
	outside.line()
	bystander.line()
	tr.show(inside.pid, outside.pid, bystander.pid)
	r := tr.reader()
	u := resolve(t, r, "2.6.0", listed(0, 1, outside.pid))
	wantUses(t, u, inOrder(use{inside.pid, model.Running, 0, 1, false}, use{outside.pid, model.Running, 0, 1, false})...)

	// A pid that matches no holder does not count, even if such a process exists.
	u = resolve(t, r, "2.6.0", listed(0, 1, outside.pid, bystander.pid))
	wantUses(t, u, inOrder(use{0, model.Hidden, 0, 1, false},
		use{inside.pid, model.Running, 0, 1, false}, use{outside.pid, model.Running, 0, 1, false})...)

	for pid, inner := range map[int]int{inside.pid: 1, outside.pid: outside.pid} {
		t.Run(fmt.Sprint(pid), func(t *testing.T) {
			if p, err := r.Process(pid); err != nil || p.InnerPID != inner {
				t.Errorf("process %d calls itself %+v, %v; want %d", pid, p, err, inner)
			}
		})
	}
}

// A recorded tree with the driver's files and no processes: nothing is known
// about them, least of all that they have exited.
func TestResolveWithoutProcesses(t *testing.T) {
	u := resolve(t, newTree(t, 1).reader(), "2.10.0", listed(0, 4242, 4242))
	wantUses(t, u, use{4242, model.Running, 0, 2, false})
	if name := u.Processes[0].Name; name.Status != model.Denied || name.Why == "" {
		t.Errorf("%+v", name)
	}
}

func doubted(list []model.Doubt, kind model.DoubtKind) bool {
	return slices.ContainsFunc(list, func(d model.Doubt) bool { return d.Kind == kind })
}

func TestCoverageDoubts(t *testing.T) {
	for want, c := range map[model.DoubtKind]Coverage{
		"":                     {Scanned: true, Processes: 9},
		model.ProcessesDenied:  {Scanned: true, Denied: 7},
		model.ProcessesGuarded: {Scanned: true, Denied: 7, Able: true},
		model.ProcessesHidden:  {Scanned: true, Denied: 7, Hiding: true},
		model.ProcessesSkipped: {Scanned: true, Processes: 9, Skipped: 3},
	} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			got := c.Doubts()
			if c.Complete() != (want == "") || len(got) > 1 || want != "" && !doubted(got, want) {
				t.Errorf("%+v: %v, want %q", c, got, want)
			}
		})
	}
}

func TestOpenerNumbers(t *testing.T) {
	for version, want := range map[string]bool{
		"2.5.0": true, "2.6.0": true, "2.6.0-rc1": true, "2.5": true,
		"2.7.0": false, "2.10.1-pre": false, "1.34": false, "2.50.0": false, "": false, "3.0": false,
	} {
		t.Run(version, func(t *testing.T) {
			if listsInnerPIDs(version) != want {
				t.Errorf("%q: %v", version, !want)
			}
		})
	}
}

func inOrder(uses ...use) []use {
	slices.SortStableFunc(uses, func(a, b use) int { return a.PID - b.PID })
	return uses
}

func processOf(t *testing.T, u Users, pid int) model.Process {
	t.Helper()
	for _, p := range u.Processes {
		if p.PID == pid {
			return p
		}
	}
	t.Fatalf("no process %d in %+v", pid, u.Processes)
	return model.Process{}
}

// waitForZombie waits until all threads of a process have ended.
func waitForZombie(t *testing.T, pid int) {
	t.Helper()
	r := New(rootFS)
	for {
		s, err := ReadStat(r.root, pid)
		if err != nil {
			t.Fatal(err)
		}
		if s.Gone() {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test is over")
		case <-time.After(time.Millisecond):
		}
	}
}
