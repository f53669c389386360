package allocsock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/ledger"
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
	l := serve(t, limited(func(lim *Limits) { lim.Descriptors = budget.Limit{PerUID: 3, All: 4} }))
	conns := []*net.UnixConn{l.dial(), l.dial(), l.dial()}
	l.send(conns[0], own(allocMsg(0, 64, 10, 0)).pack(144)) // takes the fourth, for its pidfd
	l.await(0, model.DRAM, 10)
	refused := l.dial()
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the connection too many: %v", err)
	}
	l.send(conns[1], own(allocMsg(0, 128, 10, 0)).pack(144))
	l.await(0, model.DRAM, 20)
	conns[2].Close()
	l.until("room", func() bool { return l.budgetOf("descriptors").Used == 3 })
	l.send(l.dial(), own(allocMsg(0, 256, 10, 0)).pack(144))
	l.await(0, model.DRAM, 30)
	if b := l.budgetOf("descriptors"); b.Refused != 1 || b.Used != 4 {
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

// What a process runs is found out between turns. Its connection waits for
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
		l.server.mu.Lock()
		defer l.server.mu.Unlock()
		for c := range l.server.conns {
			inheritors += len(c.inheritors)
		}
		return inheritors, len(l.server.reporters)
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

// The beat comes also when nothing happens, and not while clients cannot be served.
func TestBeat(t *testing.T) {
	var beats atomic.Int32
	l := serve(t, func(o *Options) {
		o.Beat, o.BeatEvery = func() { beats.Add(1) }, 5*time.Millisecond
	})
	l.until("five beats", func() bool { return beats.Load() >= 5 })
	for _, stuck := range []sync.Locker{&l.server.lanes[0], &l.server.lanes[1], &l.server.mu} {
		stuck.Lock()
		time.Sleep(10 * time.Millisecond) // one beat may be on its way
		before := beats.Load()
		time.Sleep(50 * time.Millisecond) // nothing must happen
		if n := beats.Load(); n != before {
			t.Errorf("%d beats of a server that is stuck", n-before)
		}
		if err := l.server.Ping(t.Context(), time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a server that is stuck answers: %v", err)
		}
		stuck.Unlock()
	}
}

// A user cannot make more than so many lines of log in a minute.
func TestLogLimit(t *testing.T) {
	var lines atomic.Int32
	s := &Server{log: slog.New(countHandler{n: &lines})}
	u := &user{uid: 12345}
	for range 10 * logLines {
		s.logFor(u, slog.LevelInfo, "something")
	}
	if n := lines.Load(); n != logLines {
		t.Errorf("%d lines, want %d", n, logLines)
	}
	u.linesSince = u.linesSince.Add(-2 * time.Minute)
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

// Many connections of a user that write without a pause are read in turns with one that
// writes seldom, of the same user and of another; bytes that could all begin a message
// keep none of them waiting.
func TestClientsTakeTurns(t *testing.T) {
	l := serve(t, nil)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(stop)
	noise := bytes.Repeat([]byte{1}, 100_000)
	for i := range 32 {
		c := l.dial()
		l.send(c, own(allocMsg(0, uint64(i+1)<<12, 1, 0)).pack(144))
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = c.Write(noise)
				}
			}
		})
	}
	l.await(0, model.DRAM, 32)
	quiet := l.dial()
	for i := range uint64(20) {
		l.send(quiet, own(allocMsg(1, 64*(i+1), 10, 0)).pack(144))
		l.await(1, model.DRAM, 10*(i+1))
	}
}

// What was sent before Receive is in the ledger after it, also on a connection that was
// not accepted yet, and while others write.
func TestReceive(t *testing.T) {
	l := serve(t, nil)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(stop)
	for range 4 {
		c := l.dial()
		busy.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
					_, _ = c.Write(own(allocMsg(0, 64*(i%1000), 10, 0)).pack(144))
				}
			}
		})
	}
	var sent uint64
	for range 200 {
		c := l.dial()
		for range 10 {
			sent++
			l.send(c, own(allocMsg(1, 64*sent, 10, 0)).pack(144))
		}
		l.server.Receive(time.Minute)
		if got := l.ledger.Device(1).Bytes[model.DRAM]; got != 10*sent {
			t.Fatalf("%d bytes after Receive, want %d", got, 10*sent)
		}
		c.Close()
	}
}

// What a process has sent before it was killed is in its leftovers.
func TestSentBeforeExit(t *testing.T) {
	l := serve(t, nil)
	const n = 100
	var text []byte
	for i := range uint64(n) {
		text = append(text, allocMsg(0, 64*(i+1), 10, 0).pack(144)...)
	}
	file := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for k := range 20 {
		child := exec.Command("python3", "-c", `
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(open(sys.argv[2], "rb").read())
os.kill(os.getpid(), 9)`, l.path, file)
		_ = child.Run()
		l.until("what it left", func() bool { return len(l.ledger.Leaks()) == k+1 })
		if left := l.ledger.Leaks()[0]; left.Count != n || left.Reason != exited {
			t.Fatalf("%d buffers are left, %s; want %d", left.Count, left.Reason, n)
		}
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
