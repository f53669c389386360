package allocsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/budget"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// until waits for something that must come.
func (l *lab) until(what string, ok func() bool) {
	l.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("timed out waiting for %s", what)
		}
	}
}

// budgetOf returns one of the server's budgets.
func (l *lab) budgetOf(name string) budget.State {
	l.Helper()
	for _, b := range l.server.Budgets() {
		if b.Name == name {
			return b
		}
	}
	l.Fatalf("no budget %s", name)
	return budget.State{}
}

// limited changes one limit; we run as the daemon's own user, which is bound by
// All alone.
func limited(change func(*Limits)) func(*Options) {
	return func(o *Options) {
		o.Limits = DefaultLimits(1000)
		change(&o.Limits)
	}
}

// A connection above the limit is closed; the others do not notice, and when
// they have gone there is room again. Nothing of a budget is lost on the way.
func TestConnectionLimit(t *testing.T) {
	l := serve(t, limited(func(lim *Limits) { lim.Descriptors = budget.Limit{PerUID: 3, All: 5} }))
	conns := []*net.UnixConn{l.dial(), l.dial(), l.dial()}  // and the set of their user
	l.send(conns[0], own(allocMsg(0, 64, 10, 0)).pack(144)) // takes the fifth, for its pidfd
	l.await(0, model.DRAM, 10)
	refused := l.dial()
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the connection too many: %v", err)
	}
	l.send(conns[1], own(allocMsg(0, 128, 10, 0)).pack(144))
	l.await(0, model.DRAM, 20)
	conns[2].Close()
	l.until("room", func() bool { return l.budgetOf("descriptors").Used == 4 })
	l.send(l.dial(), own(allocMsg(0, 256, 10, 0)).pack(144))
	l.await(0, model.DRAM, 30)
	if b := l.budgetOf("descriptors"); b.Refused != 1 || b.Used != 5 {
		t.Errorf("budget %+v", b)
	}
}

// A process above the limit is ignored, and keeps its connection.
func TestReporterLimit(t *testing.T) {
	l := serve(t, limited(func(lim *Limits) { lim.Reporters = budget.Limit{PerUID: 1, All: 0} }))
	c := l.dial()
	l.send(c, own(allocMsg(0, 64, 10, 0)).pack(144), msg{typ: msgQuery}.pack(144))
	reply := make([]byte, 144)
	if _, err := io.ReadFull(c, reply); err != nil || le64(reply[40:]) != 0 {
		t.Errorf("device 0 holds %d, %v", le64(reply[40:]), err)
	}
	if n := l.ledger.Stats().Processes; n != 0 {
		t.Errorf("%d processes", n)
	}
}

// Replies that are not read are bounded for all connections of a user together.
func TestUnreadLimit(t *testing.T) {
	l := serve(t, limited(func(lim *Limits) { lim.Unread = budget.Limit{PerUID: 64 << 10, All: 64 << 10} }))
	var questions []byte
	for range 1000 {
		questions = append(questions, msg{typ: msgQuery}.pack(144)...)
	}
	var conns []*net.UnixConn
	for range 5 {
		c := l.dial()
		for range 5 {
			l.send(c, questions)
		}
		conns = append(conns, c)
	}
	l.until("the limit", func() bool { return l.budgetOf("unread_bytes").Refused > 0 })
	if b := l.budgetOf("unread_bytes"); b.Used > 64<<10 {
		t.Errorf("budget %+v", b)
	}
	for _, c := range conns {
		c.Close()
	}
	l.until("everything to be given back", func() bool {
		return l.budgetOf("unread_bytes").Used == 0 && l.server.Stats().Connections == 0
	})
}

// What a process runs is found out beside the loop. Its connection waits for
// it, in order; others do not, and one that hangs up meanwhile is read.
func TestLookingWaits(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	answer := make(chan language)
	l.server.languageOf = func(int, string) language { return <-answer }
	l.run()
	a, b := l.dial(), l.dial()
	l.send(a, own(allocMsg(0, 64, 10, 3)).pack(112), own(allocMsg(1, 64, 5, 0)).pack(112))
	l.send(b, own(allocMsg(2, 64, 7, 0)).pack(144))
	l.await(2, model.DRAM, 7)
	if u := l.ledger.Device(1); u.Count() != 0 {
		t.Errorf("what comes later was booked earlier: %+v", u)
	}
	a.Close()
	answer <- plainPython
	l.await(0, model.Trace, 10) // Python's 3
	l.await(1, model.DRAM, 5)
	l.until("the connection to be dropped", func() bool { return l.server.Stats().Connections == 1 })
	if b := l.budgetOf("looks"); b.Used != 0 {
		t.Errorf("budget %+v", b)
	}
}

// An inspection that does not end is abandoned; no client waits for it for
// ever.
func TestInspectionTimeout(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	forever := make(chan struct{})
	l.server.languageOf = func(int, string) language { <-forever; return plainPython }
	l.run()
	c := l.dial()
	l.send(c, own(allocMsg(0, 64, 10, 3)).pack(112))
	l.await(0, model.L1Small, 10) // as if it might not be read
	close(forever)
	l.until("the place to be given back", func() bool { return l.budgetOf("looks").Used == 0 })
}

// A server that is stopped during an inspection, and while it makes a text,
// stops at once, and resumes where it was.
func TestStopWhileBusy(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	forever := make(chan struct{})
	l.server.languageOf = func(int, string) language { <-forever; return plainPython }
	l.server.textTurns[0].Lock() // no text is made
	l.run()
	looked, asks := l.dial(), l.dial()
	l.send(looked, own(allocMsg(0, 64, 10, 3)).pack(112))
	l.send(asks, []byte("QUERY_ALL\n"))
	l.until("both", func() bool { return l.budgetOf("looks").Used == 1 && l.budgetOf("texts").Used == 1 })
	l.stop()
	l.server.textTurns[0].Unlock()
	l.run()
	text := make([]byte, 5)
	if _, err := io.ReadFull(asks, text); err != nil || string(text) != "ERROR" {
		t.Errorf("the text %q, %v", text, err)
	}
	l.await(0, model.L1Small, 10)
	close(forever)
}

// A process whose pid another had before ttmond was stopped is itself.
func TestPIDOfAnother(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	old := model.ProcessID{PID: os.Getpid(), StartTicks: 1}
	st := State{Procs: []procState{{Key: old, UID: os.Getuid(), Name: "dead"}}}
	if err := l.server.Import(st, nil); err != nil {
		t.Fatal(err)
	}
	c := l.dial()
	l.send(c, own(allocMsg(0, 64, 10, 0)).pack(144))
	l.run()
	l.await(0, model.DRAM, 10)
	l.until("the dead one to go", func() bool { return l.ledger.Stats().Processes == 1 })
	if list := l.ledger.Processes(); list[0].StartTicks == 1 || list[0].Buffers != 1 {
		t.Errorf("processes %+v", list)
	}
}

// Processes that wrote on another's connection are forgotten when they end,
// however many there were.
func TestInheritorsAreDropped(t *testing.T) {
	l := serve(t, nil)
	c := l.dial()
	l.send(c, own(allocMsg(1, 64, 5, 0)).pack(144))
	l.await(1, model.DRAM, 5)
	conn, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var text strings.Builder // what printf of the shell itself writes: no other process
	for _, b := range allocMsg(0, 64, 10, 0).pack(144) {
		fmt.Fprintf(&text, `\%03o`, b)
	}
	for range maxInheritors + 10 {
		child := exec.Command("sh", "-c", `printf "$1" >&3; read x`, "sh", text.String())
		child.ExtraFiles = []*os.File{conn}
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		l.await(0, model.DRAM, 10)
		in.Close()
		_ = child.Wait()
		l.await(0, model.DRAM, 0)
	}
	left := func() (inheritors, reporters int) {
		done := make(chan struct{})
		l.server.post(func() {
			defer close(done)
			for c := range l.server.conns {
				inheritors += len(c.inheritors)
			}
			reporters = len(l.server.reporters)
		})
		<-done
		return inheritors, reporters
	}
	l.until("all but who connected to be forgotten", func() bool {
		inheritors, reporters := left()
		return inheritors == 0 && reporters == 1 && l.ledger.Stats().Processes == 1
	})
	l.await(1, model.DRAM, 5)
}

// The service manager gets each connection once, later if it is busy, and as
// many as a user may have there.
func TestStore(t *testing.T) {
	var busy atomic.Bool
	var stored atomic.Int32
	busy.Store(true)
	l := serve(t, func(o *Options) {
		o.Limits = DefaultLimits(1000)
		o.Limits.Stored = budget.Limit{All: 2}
		o.Store = func(int) error {
			if busy.Load() {
				return unix.EAGAIN
			}
			stored.Add(1)
			return nil
		}
	})
	for i := range uint64(3) {
		l.send(l.dial(), own(allocMsg(0, 64+i*64, 10, 0)).pack(144))
	}
	l.await(0, model.DRAM, 30) // no client waits for it
	if n := stored.Load(); n != 0 {
		t.Errorf("%d stored by a busy manager", n)
	}
	busy.Store(false)
	l.until("two to be stored", func() bool { return stored.Load() == 2 })
	if b := l.budgetOf("stored_connections"); b.Refused != 1 {
		t.Errorf("budget %+v", b)
	}
}

// Connections that come and go do not keep the service manager busy: after the
// first ones a user has it work a few times a second.
func TestStoreRate(t *testing.T) {
	u, now := &user{uid: 60000}, time.Unix(1000, 0)
	taken := func() (n int) {
		for ; u.mayStore(now); now = now.Add(time.Nanosecond) {
			n++
		}
		return n
	}
	if n := taken(); n != storesAtOnce {
		t.Errorf("%d at once", n)
	}
	now = now.Add(10 * time.Second)
	if n := taken(); n != 10*storesPerSecond {
		t.Errorf("%d in ten seconds", n)
	}
	now = now.Add(-time.Hour) // the clock was set
	if n := taken(); n != 0 {
		t.Errorf("%d by a clock that was set back", n)
	}
	now = now.Add(24 * time.Hour)
	if n := taken(); n != storesAtOnce {
		t.Errorf("%d after a day", n)
	}
	now = now.Add(time.Hour)
	for i := range storesOfAUser + 1 {
		if u.mayStore(now) != (i < storesOfAUser) {
			t.Errorf("%d at a time", i)
		}
	}
}

// The loop sends its beat, also when nothing happens.
func TestBeat(t *testing.T) {
	var beats atomic.Int32
	l := serve(t, func(o *Options) {
		o.Beat, o.BeatEvery = func() { beats.Add(1) }, 5*time.Millisecond
	})
	l.until("five beats", func() bool { return beats.Load() >= 5 })
	if s := l.server.Loop(); s.Turns < 5 || s.WorstEver == 0 {
		t.Errorf("loop %+v", s)
	}
}

// A user cannot make more than so many lines of log in a minute.
func TestLogLimit(t *testing.T) {
	var lines atomic.Int32
	s := &Server{log: slog.New(countHandler{n: &lines}), now: time.Now()}
	u := &user{uid: 12345}
	for range 10 * logLines {
		s.logFor(u, slog.LevelInfo, "something")
	}
	if n := lines.Load(); n != logLines {
		t.Errorf("%d lines, want %d", n, logLines)
	}
	s.now = s.now.Add(2 * time.Minute)
	s.logFor(u, slog.LevelInfo, "something")
	if n := lines.Load(); n != logLines+1 || s.count.lostLines.Load() != 9*logLines {
		t.Errorf("%d lines, %d lost", n, s.count.lostLines.Load())
	}
}

type countHandler struct {
	slog.Handler
	n *atomic.Int32
}

func (h countHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h countHandler) Handle(context.Context, slog.Record) error { h.n.Add(1); return nil }

// Who has had a share of a turn is passed over until the next.
func TestShares(t *testing.T) {
	s := &Server{turn: 1, clock: time.Now()}
	u, root := &user{uid: 12345}, &user{uid: 0}
	if !s.hasShare(u) {
		t.Fatal("no share at first")
	}
	u.spent = share
	if s.hasShare(u) || !s.hasShare(root) {
		t.Error("a user who has had a share has one, or root has none")
	}
	if s.turn++; !s.hasShare(u) {
		t.Error("no share in the next turn")
	}
	s.othersSpent = othersTime
	if s.hasShare(u) || !s.hasOwnShare(u) || !s.hasShare(root) {
		t.Error("many users together have had more than their part of a turn, or root has not its own")
	}
}

// Texts take a fifth of a core at most, also if several are asked for at once.
func TestRest(t *testing.T) {
	now := time.Now()
	u := &user{textAfter: now.Add(-time.Hour)}
	for k := range 4 {
		u.delayNextText(now.Add(time.Duration(k)*time.Second), time.Second)
	}
	if got := u.textAfter.Sub(now); got != 16*time.Second {
		t.Errorf("after four texts of a second each the next may begin %v after the first", got)
	}
}

// Root is served first, then who has waited longest.
func TestOrderOfUsers(t *testing.T) {
	s := &Server{turn: 10, users: map[int]*user{}}
	var served []int
	for uid, last := range map[int]uint64{12345: 9, 0: 9, 12346: 3, 12347: 5} {
		u := &user{uid: uid, set: -1, served: last}
		s.users[uid] = u
		s.schedule(u)
		s.schedule(u) // once is enough
	}
	s.orderUsers()
	for _, u := range s.turnOf {
		served = append(served, u.uid)
	}
	if want := []int{0, 12346, 12347, 12345}; !slices.Equal(served, want) {
		t.Errorf("order %v, want %v", served, want)
	}
	s.othersSpent = othersTime // only root is served
	s.serveUsers()
	if s.users[0].served != 10 || s.users[12346].served != 3 || len(s.turnOf) != 0 {
		t.Errorf("root was last served in turn %d, who waits in %d", s.users[0].served, s.users[12346].served)
	}
}

// What was read and takes too long is left for a later turn, in order, whole, and
// without another message to wake it: here every batch takes too long.
func TestLeftForLater(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	l.server.stepTime = -1
	l.run()
	const n = 2000
	var b []byte
	for k := range uint64(n) {
		b = append(b, own(allocMsg(int32(k%3), 64*k, 10, 0)).pack(144)...)
	}
	c, other, leaves := l.dial(), l.dial(), l.dial()
	l.send(leaves, own(allocMsg(9, 64, 1, 0)).pack(144), b[:1000*144])
	leaves.Close() // and is read to the end
	l.send(c, b, msg{typ: msgQuery, dev: 2}.pack(144))
	l.send(other, own(allocMsg(7, 64, 5, 0)).pack(144))
	l.await(7, model.DRAM, 5)
	reply := make([]byte, 144)
	if _, err := io.ReadFull(c, reply); err != nil || le64(reply[40:]) != n/3*10 {
		t.Errorf("device 2 holds %d, %v", le64(reply[40:]), err)
	}
	l.await(9, model.DRAM, 1)
	l.until("the one that left to be dropped", func() bool { return l.server.Stats().Connections == 2 })
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = 1 // every byte could begin a message
	}
	l.send(c, noise, own(allocMsg(8, 64, 5, 0)).pack(144), own(allocMsg(8, 128, 5, 0)).pack(144))
	l.await(8, model.DRAM, 10)
}

func TestWindow(t *testing.T) {
	var w window[time.Duration]
	at := time.Now()
	w.add(5*time.Millisecond, byLength, at)
	w.add(time.Millisecond, byLength, at.Add(90*time.Second))
	if got := w.longest(byLength); got != 5*time.Millisecond {
		t.Errorf("longest %v after 90 s", got)
	}
	w.add(2*time.Millisecond, byLength, at.Add(200*time.Second))
	if got := w.longest(byLength); got != 2*time.Millisecond || w.ever != 5*time.Millisecond {
		t.Errorf("longest %v after 200 s, %v ever", got, w.ever)
	}
}

// Ids in texts are for their user and root.
func TestTextsHideIDs(t *testing.T) {
	l := ledger.New(ledger.Options{})
	for uid := range 2 {
		p := l.Open(ledger.Info{ProcessID: model.ProcessID{PID: 100 + uid}, UID: 1000 + uid}, time.Now())
		l.Apply(p, []ledger.Event{
			{Op: ledger.Alloc, ID: 0xabc0 + uint64(uid), Size: 10},
			{Op: ledger.KernelLoad, ID: 0xdef0 + uint64(uid), Size: 10},
		}, time.Now())
	}
	for name, text := range map[string]composer{"dump": DumpText, "kernels": KernelText, "all": allText} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				v           Viewer
				own, others bool
			}{{Viewer{UID: 1000}, true, false}, {Viewer{UID: -1}, false, false}, {Viewer{All: true}, true, true}} {
				got := text(l, c.v, time.Now())
				if strings.Contains(got, "0xdef0") != c.own || strings.Contains(got, "0xdef1") != c.others {
					t.Errorf("%s for %+v:\n%s", name, c.v, got)
				}
			}
		})
	}
}
