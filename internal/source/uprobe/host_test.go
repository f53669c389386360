package uprobe

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// hostOf is what is claimed of what a process enqueues and waits for; nil: nothing.
func hostOf(s *Source, pid int) *model.HostWork {
	set := s.Claims()
	i := slices.IndexFunc(set.Hosts, func(h claim.Host) bool { return h.Process.PID == pid })
	if i < 0 {
		return nil
	}
	return &set.Hosts[i].HostWork
}

// hostCause is why nothing is.
func hostCause(s *Source, pid int) model.HostCause {
	for _, l := range s.Claims().Listens {
		if l.Process.PID == pid {
			return l.Host
		}
	}
	return "not known"
}

// TestHostFromOutside: what the real ttnn enqueues, and that it waits, is known of
// a program that knows nothing of us: also while it is stopped, and not when it
// was killed.
func TestHostFromOutside(t *testing.T) {
	s := watch(t, Options{Waits: true})
	for _, release := range workReleases() {
		t.Run(release, func(t *testing.T) {
			if isOld(release) {
				t.Skip("a tt-metal before 0.76 makes no command queue in mock mode: there is nothing to enqueue to")
			}
			f := startFed(t, s, release, 1, 1)
			do(t, f.Job, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536})
			host := func() model.HostWork {
				t.Helper()
				h := hostOf(s, f.PID)
				if h == nil {
					t.Fatalf("nothing is known of it: %q", hostCause(s, f.PID))
				}
				return *h
			}
			before := host().Enqueued
			do(t, f.Job, ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
			if h := host(); h.Enqueued != before+1 || h.Settled() || h.LastEnqueue.IsZero() || !h.WaitingSince.IsZero() {
				t.Errorf("after one call: %+v, %d before", h, before)
			}
			do(t, f.Job, ttnn.Step{"do": "finish"})
			if h := host(); !h.Settled() || h.LastFinish.Before(h.LastEnqueue) {
				t.Errorf("after a finish: %+v", h)
			}
			f.waitsFor(t, host)
			f.killedInWait(t)
		})
	}
}

// waitsFor has the job wait in a finish, stopped meanwhile.
func (f *fed) waitsFor(t *testing.T, host func() model.HostWork) {
	t.Helper()
	chip, before := f.feed.Chips[0], time.Now()
	do(t, f.Job, ttnn.Step{"do": "add", "name": "c", "of": []string{"a", "a"}})
	chip.Hold(true)
	do(t, f.Job, ttnn.Step{"do": "finish", "later": true})
	eventually(t, "it waits", func() bool { return !host().WaitingSince.IsZero() })
	h := host()
	if h.WaitingFor != model.WaitsForFinish || h.WaitingSince.Before(before.Add(-time.Second)) || h.WaitingSince.After(time.Now()) || h.Settled() {
		t.Errorf("while it waits: %+v", h)
	}
	if err := syscall.Kill(f.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if again := host(); again.WaitingSince.Sub(h.WaitingSince).Abs() > time.Second {
		t.Errorf("stopped: waits since %v, then since %v", h.WaitingSince, again.WaitingSince)
	}
	if err := syscall.Kill(f.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	chip.Hold(false)
	eventually(t, "the wait is over", func() bool { return host().WaitingSince.IsZero() })
	if h := host(); h.Settled() {
		t.Errorf("another thread has enqueued, and is not known to have done so before the wait: %+v", h)
	}
	do(t, f.Job, ttnn.Step{"do": "finish"})
	if h := host(); !h.Settled() {
		t.Errorf("the thread that enqueued has waited: %+v", h)
	}
}

// killedInWait kills the job in a finish: nothing is left of the wait.
func (f *fed) killedInWait(t *testing.T) {
	t.Helper()
	f.feed.Chips[0].Hold(true)
	do(t, f.Job, ttnn.Step{"do": "finish", "later": true})
	eventually(t, "it waits again", func() bool { h := hostOf(f.s, f.PID); return h != nil && !h.WaitingSince.IsZero() })
	if err := syscall.Kill(f.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is claimed of it", func() bool { return hostOf(f.s, f.PID) == nil })
	eventually(t, "nothing of it is left in the kernel", func() bool { return f.s.hostRows()[uint32(f.PID)] == nil })
}

// fakeQueues is a fake program with probes where it enqueues and waits.
func fakeQueues(t *testing.T, s *Source) *workload {
	t.Helper()
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	return w
}

// TestQueuesFromOutside: all queues must have been waited for. One that is gone,
// or that another has taken the place of, does not count.
func TestQueuesFromOutside(t *testing.T) {
	s := watch(t, Options{Waits: true})
	w := fakeQueues(t, s)
	for _, step := range []struct {
		name, do string
		settled  bool
	}{
		{"nothing was asked for", "queue 100", true},
		{"another queue", "queue 200", true},
		{"work on the first", "enqueue 3 100", false},
		{"a wait for the other", "finish 1 200", false},
		{"work on the other", "enqueue 1 200", false},
		{"a wait for the first", "finish 1 100", false},
		{"a wait for both", "finish 1 200", true},
		{"more work on the first", "enqueue 2 100", false},
		{"the first is gone, which no thread waited for", "unqueue 100", false},
		{"a wait for what is left", "finish 1 200", true},
		{"another in its place", "queue 100", true},
		{"and work on it", "enqueue 1 100", false},
		{"a wait for it", "finish 1 100", true},
		{"a queue that was never made", "enqueue 1 300", false},
		{"a wait for it, and how many there are is unknown", "finish 1 300", false},
	} {
		w.do(step.do)
		if h := hostOf(s, w.pid); h == nil || h.Settled() != step.settled {
			t.Errorf("%s: settled should be %v: %+v (%q)", step.name, step.settled, h, hostCause(s, w.pid))
		}
	}
	if h := hostOf(s, w.pid); h.Enqueued != 8 || !h.WaitingSince.IsZero() {
		t.Errorf("%+v", h)
	}
}

// TestHostTooOften: the probes are taken out of a process that hits them too
// often. Another one keeps them, and does not count as idle: calls may have been
// missed when its probes were changed.
func TestHostTooOften(t *testing.T) {
	s := watch(t, Options{Waits: true, Limit: 5000})
	program, library := fake(t)
	fast, slow := startFake(t, exec.Command(program, library)), startFake(t, exec.Command(program, library))
	for _, w := range []*workload{fast, slow} {
		eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
		w.do("make %d 5", 1<<20)
		w.do("queue 100")
	}
	eventually(t, "it is too fast", func() bool {
		fast.do("enqueue 100000 100")
		return hostCause(s, fast.pid) == model.HostTooFast
	})
	if h := hostOf(s, fast.pid); h != nil {
		t.Errorf("%+v", h)
	}
	eventually(t, "the other one is known", func() bool {
		before := hostOf(s, slow.pid)
		slow.do("enqueue 1 100")
		after := hostOf(s, slow.pid)
		return before != nil && after != nil && after.Enqueued > before.Enqueued
	})
}

// TestHostUnknown: what is not known has its reason.
func TestHostUnknown(t *testing.T) {
	whole := []probe{{site: hostEnqueue}, {site: hostFinish}}
	for _, c := range []struct {
		name   string
		o      Options
		l      *library
		fast   bool
		want   model.HostCause
		claims bool
	}{
		{"not asked for", Options{}, &library{probes: whole}, false, model.HostNotAsked, false},
		{"too fast", Options{Waits: true}, &library{probes: whole, hostArmed: 1}, true, model.HostTooFast, false},
		{"no library", Options{Waits: true}, nil, false, model.HostNotWatched, false},
		{"a finish whose end is not known", Options{Waits: true}, &library{probes: whole[:1]}, false, model.HostNoSymbols, false},
		{"the probes are out", Options{Waits: true}, &library{probes: whole}, false, model.HostNotWatched, false},
		{"known", Options{Waits: true}, &library{probes: whole, hostArmed: 1}, false, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource(c.o, &kernel{})
			p := s.accounts.process(7)
			p.fast[groupHost] = c.fast
			if c.l != nil {
				s.libraries[fileID{1, 2}], s.known[7] = c.l, []fileID{{1, 2}}
			}
			var set claim.Set
			if got := s.claimHost(&set, p, nil, 0); got != c.want || (len(set.Hosts) == 1) != c.claims {
				t.Errorf("%q, %+v", got, set.Hosts)
			}
		})
	}
}

// TestHostMissed: a process that may have called before its probes were set is
// never counted as idle, whatever it waited for since.
func TestHostMissed(t *testing.T) {
	const second = 1_000_000_000
	for _, c := range []struct {
		name    string
		l       *library
		start   uint64 // s after boot
		late    bool
		settled bool
	}{
		{"it started after the probes were set", &library{armed: 5 * second, hostArmed: 5 * second}, 9, true, true},
		{"it loaded the library when they were set", &library{armed: 9 * second, hostArmed: 9 * second}, 5, false, true},
		{"it ran before", &library{armed: 9 * second, hostArmed: 9 * second}, 5, true, false},
		{"they were set again meanwhile", &library{armed: 5 * second, hostArmed: 9 * second}, 7, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource(Options{Waits: true}, &kernel{})
			c.l.probes = []probe{{site: hostEnqueue}, {site: hostFinish}}
			p := s.accounts.process(7)
			p.Start, p.Late = ticks(c.start*second), c.late
			s.libraries[fileID{1, 2}], s.known[7] = c.l, []fileID{{1, 2}}
			var set claim.Set
			s.claimHost(&set, p, &watchHost{Enqueued: 1, LastEnqueue: 10 * second, LastFinish: 11 * second}, 0)
			if len(set.Hosts) != 1 || set.Hosts[0].Settled() != c.settled {
				t.Errorf("%+v", set.Hosts)
			}
		})
	}
}

// TestHostTakeover: a successor knows what was enqueued and waited for, also while
// no daemon read. One whose configuration differs takes the probes out, or sets them;
// then it does not know what was before.
func TestHostTakeover(t *testing.T) {
	source, err := Open(Options{Waits: true, fresh: time.Minute})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	end := runUntil(t, source)
	w := fakeQueues(t, source)
	w.do("queue 100")
	w.do("enqueue 3 100")
	for _, c := range []struct {
		name    string
		waits   bool
		between string // while no daemon reads
		after   string
		want    uint64 // enqueued; 0: not known
		settled bool
	}{
		{"the same", true, "enqueue 2 100", "finish 1 100", 5, true},
		{"switched off", false, "enqueue 1 100", "finish 1 100", 0, false},
		{"switched on", true, "enqueue 1 100", "enqueue 1 100", 1, false},
		{"the same again: what was missed stays missed", true, "enqueue 1 100", "finish 1 100", 2, false},
	} {
		state, files, done, err := source.Export()
		if err != nil {
			t.Fatal(err)
		}
		files = copies(t, files)
		w.do(c.between)
		done(true)
		if source, err = OpenFrom(Options{Waits: c.waits}, state, files); err != nil {
			t.Fatal(err)
		}
		end()
		end = runUntil(t, source)
		w.do(c.after)
		h := hostOf(source, w.pid)
		switch {
		case c.want == 0:
			if h != nil || hostCause(source, w.pid) != model.HostNotAsked {
				t.Errorf("%s: %+v, %q", c.name, h, hostCause(source, w.pid))
			}
		case h == nil || h.Enqueued != c.want || h.Settled() != c.settled:
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}
