package allocsock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/unixsock"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// lab is a server in this process; the tests of cmd/ttmond run the real one.
type lab struct {
	*testing.T
	path   string
	ledger *ledger.Ledger
	server *Server
	stop   func()
}

func serve(t *testing.T, change func(*Options)) *lab {
	t.Helper()
	l := &lab{T: t, path: filepath.Join(t.TempDir(), "s"), ledger: ledger.New(ledger.Options{})}
	fd, err := unixsock.Listen(unixsock.Options{Path: l.path})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Ledger: l.ledger, Listener: fd}
	if change != nil {
		change(&o)
	}
	if l.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	l.run()
	t.Cleanup(func() {
		l.stop()
		l.server.Close()
		l.ledger.Wait()
	})
	return l
}

// run starts the server; stop stops it.
func (l *lab) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.server.Run(ctx) }()
	l.stop = func() {
		l.Helper()
		cancel()
		if err := <-done; err != nil {
			l.Error(err)
		}
		l.stop = func() {}
	}
}

func (l *lab) dial() *net.UnixConn {
	l.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func (l *lab) send(c net.Conn, parts ...[]byte) {
	l.Helper()
	for _, p := range parts {
		if _, err := c.Write(p); err != nil {
			l.Fatal(err)
		}
	}
}

// await waits until a device holds bytes of a pool.
func (l *lab) await(dev int32, pool model.Pool, want uint64) {
	l.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := l.ledger.Device(dev).Bytes[pool]
		if got == want {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("device %d holds %d of %s, want %d", dev, got, pool, want)
		}
	}
}

func own(m msg) msg { m.pid = int32(os.Getpid()); return m }

// A client that writes without a pause gets its answers all the same.
func TestBusyClient(t *testing.T) {
	l := serve(t, nil)
	c := l.dial()
	const n = 20_000
	for i := range uint64(n) {
		l.send(c, own(allocMsg(0, 1<<32+i*64, 10, 0)).pack(144))
	}
	l.send(c, msg{typ: msgQuery}.pack(144))
	reply := make([]byte, 144)
	if _, err := io.ReadFull(c, reply); err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint64(reply[40:]); got != 10*n {
		t.Errorf("device 0 holds %d, want %d", got, 10*n)
	}
	l.send(c, own(freeMsg(0, 1<<32)).pack(144))
	l.await(0, model.DRAM, 10*n-10)
}

// A server that was stopped resumes where it was.
func TestRunAgain(t *testing.T) {
	l := serve(t, nil)
	c := l.dial()
	m := own(allocMsg(0, 64, 10, 0)).pack(112)
	l.send(c, m, m[:50])
	l.await(0, model.DRAM, 10)
	l.stop()
	l.send(c, m[50:], own(allocMsg(0, 128, 5, 0)).pack(112))
	l.run()
	l.await(0, model.DRAM, 15)
	if err := l.server.Ping(t.Context(), 10*time.Second); err != nil {
		t.Error(err)
	}
}

// A server made from another one's state and descriptors knows all it knew.
func TestExportImport(t *testing.T) {
	l := serve(t, nil)
	c, viewer := l.dial(), l.dial()
	m := own(allocMsg(0, 64, 10, 0)).pack(128)
	l.send(c, m, own(allocMsg(0, 128, 10, 0)).pack(128), m[:30])
	l.await(0, model.DRAM, 20)
	l.send(viewer, msg{typ: msgDumpRemaining}.pack(72))
	for len(l.server.Dumps()) == 0 {
		time.Sleep(time.Millisecond)
	}
	l.stop()
	st, fds, err := l.server.Export()
	if err != nil {
		t.Fatal(err)
	}
	if len(fds) != 2 || len(st.Conns) != 2 || len(st.Procs) != 1 {
		t.Fatalf("%d descriptors, %d connections, %d processes", len(fds), len(st.Conns), len(st.Procs))
	}
	next, err := New(Options{Ledger: l.ledger, Listener: -1})
	if err != nil {
		t.Fatal(err)
	}
	var dups []int
	for _, fd := range append(fds, fds[0]) { // one comes twice, as from systemd
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		dups = append(dups, dup)
	}
	if err := next.Import(st, dups); err != nil {
		t.Fatal(err)
	}
	l.server.Close()
	l.server = next
	l.run()
	if s := next.Stats(); s.Connections != 2 || s.Accepted != 2 {
		t.Errorf("stats %+v", s)
	}
	if next.Since() != st.Since || len(next.Dumps()) != 1 {
		t.Errorf("since %v, %d dumps", next.Since(), len(next.Dumps()))
	}
	l.send(c, m[30:], own(allocMsg(0, 256, 7, 0)).pack(128))
	l.await(0, model.DRAM, 27)
}

// A process that only its connection shows to be running has a little time to
// connect again.
func TestGrace(t *testing.T) {
	l := serve(t, func(o *Options) { o.Grace = 50 * time.Millisecond })
	c := l.dial()
	l.send(c, own(allocMsg(0, 64, 10, 0)).pack(144))
	l.await(0, model.DRAM, 10)
	l.stop()
	for _, p := range l.server.reporters { // as if the kernel had no pidfds
		p.exit.file.Close()
		p.exit = nil
	}
	l.run()
	c.Close()
	l.await(0, model.DRAM, 0)
	leaks := l.ledger.Leaks()
	for len(leaks) == 0 {
		time.Sleep(time.Millisecond)
		leaks = l.ledger.Leaks()
	}
	if leaks[0].Reason != "disconnected" {
		t.Errorf("reason %q", leaks[0].Reason)
	}
}

// Replies for a client that does not read are bounded.
func TestBoundedReplies(t *testing.T) {
	l := serve(t, nil)
	c := l.dial()
	questions := make([]byte, 0, 144*100)
	for range 100 {
		questions = append(questions, msg{typ: msgQuery}.pack(144)...)
	}
	for range 100 {
		l.send(c, questions)
	}
	l.send(c, own(allocMsg(0, 64, 10, 0)).pack(144))
	l.await(0, model.DRAM, 10)
	s := l.server.Stats()
	if s.Dropped == 0 || s.Replies+s.Dropped != 10_000 {
		t.Errorf("stats %+v", s)
	}
	if s.Replies > 8000 {
		t.Errorf("%d replies were kept for a client that does not read", s.Replies)
	}
}

// A large text is made between turns.
func TestLargeText(t *testing.T) {
	l := serve(t, nil)
	p := l.ledger.Open(ledger.Info{ProcessID: model.ProcessID{PID: 1}}, time.Now())
	for i := range uint64(5000) {
		l.ledger.Apply(p, []ledger.Event{{Op: ledger.Alloc, ID: i * 64, Size: 10}}, time.Now())
	}
	c := l.dial()
	l.send(c, []byte("QUERY_ALL\n"))
	_ = c.CloseWrite()
	text, err := io.ReadAll(c)
	if err != nil || len(text) < 50_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for _, leave := range []bool{true, false} { // one leaves before it is made
		c := l.dial()
		l.send(c, []byte("\n"))
		if leave {
			c.Close()
			continue
		}
		_ = c.CloseWrite()
		if text, err := io.ReadAll(c); err != nil || len(text) == 0 {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// A client that requests texts in a loop keeps no other waiting.
func TestTextFlood(t *testing.T) {
	l := serve(t, nil)
	p := l.ledger.Open(ledger.Info{ProcessID: model.ProcessID{PID: 1}}, time.Now())
	for i := range uint64(5000) {
		l.ledger.Apply(p, []ledger.Event{{Op: ledger.Alloc, ID: i * 64, Size: 10}}, time.Now())
	}
	flood, other := l.dial(), l.dial()
	for range 5000 {
		l.send(flood, msg{typ: msgDumpRemaining}.pack(72))
	}
	l.send(other, own(allocMsg(1, 64, 10, 0)).pack(144))
	l.await(1, model.DRAM, 10)
	if s := l.server.Stats(); s.Dropped == 0 {
		t.Errorf("every one of 5000 dumps was made: %+v", s)
	}
	for end := time.Now().Add(time.Minute); len(l.server.Dumps()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no dump was made")
		}
	}
}

func TestLookUpSelf(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	cred, err := credentials(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	p := identifyPeer(pair[0], cred)
	if p.pidfd < 0 {
		t.Fatal("no pidfd")
	}
	defer unix.Close(p.pidfd)
	if start, name := readStat(os.Getpid()); p.PID != os.Getpid() || p.StartTicks != start || p.Name != name || p.UID != os.Getuid() || p.exited {
		t.Errorf("%+v", p)
	}
}

// Which list of buffer types a process means.
func TestLanguage(t *testing.T) {
	if got := languageOf(os.Getpid(), "python3"); got != notPython {
		t.Errorf("a Go program is identified as %d", got)
	}
	if got := languageOf(1<<30, "python3"); got != metalPython { // not to be read
		t.Errorf("an unknown Python is identified as %d", got)
	}
	for _, c := range []struct {
		name string
		of   language
		want [2]reading
	}{
		{"not Python", notPython, [2]reading{readingMetal, readingMetal}},
		{"plain Python", plainPython, [2]reading{readingPython, readingPython}},
		{"Python with tt-metal", metalPython, [2]reading{readingMetal, readingPython}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := [2]reading{c.of.reading(false), c.of.reading(true)}; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Replies have the layout of each version.
func TestReplies(t *testing.T) {
	u := ledger.Use{Device: 3}
	for i := range u.Bytes {
		u.Bytes[i] = uint64(i + 1)
	}
	for _, size := range []int{72, 112, 128, 144} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			f := appendQueryReply(nil, size, &u)
			want := []uint64{1, 2, 3, 4}
			if size >= 128 {
				want = append(want, 5, 6)
			}
			for i, w := range want {
				if got := le64(f[40+8*i:]); got != w {
					t.Errorf("size %d, counter %d: %d, want %d", size, i, got, w)
				}
			}
			if len(f) != size || f[0] != msgResponse || frameDevice(f) != 3 || !allZero(f[40+8*len(want):]) {
				t.Errorf("size %d: % x", size, f)
			}
		})
	}
	devices := []DeviceInfo{{}, {Arch: 2, DRAMBytes: 12 << 30, L1Bytes: 100, DRAMChannels: 12, DRAMPerChannel: 1 << 30, L1PerCore: 1499136}}
	for size, at := range map[int]int{112: 72, 128: 88, 144: 88} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			f := appendInfoReply(nil, size, 1, devices)
			got := fmt.Sprint(le64(f[at:]), le64(f[at+8:]), le32(f[at+16:]), le32(f[at+20:]), le32(f[at+24:]), le32(f[at+28:]), le32(f[at+32:]), le32(f[at+36:]))
			if want := "12884901888 100 2 12 1073741824 1499136 1 0"; got != want || len(f) != size {
				t.Errorf("size %d: %s, want %s", size, got, want)
			}
			f = appendInfoReply(nil, size, -1, devices)
			if le32(f[at+32:]) != 1 || le32(f[at+36:]) != 2 || !allZero(f[at:at+32]) {
				t.Errorf("size %d, count: % x", size, f[at:])
			}
			if f = appendInfoReply(nil, size, 2, devices); !allZero(f[8:]) {
				t.Errorf("size %d, no such device: % x", size, f)
			}
		})
	}
	if f := appendInfoReply(nil, 72, 1, devices); len(f) != 72 || !allZero(f[8:]) {
		t.Errorf("72 bytes have no room for it: % x", f)
	}
}

func TestStatsRecords(t *testing.T) {
	l := serve(t, func(o *Options) { o.Devices = func() []DeviceInfo { return make([]DeviceInfo, 2) } })
	c := l.dial()
	l.send(c, own(allocMsg(1, 64, 10, 0)).pack(144), own(allocMsg(7, 64, 20, 1)).pack(144))
	l.await(7, model.L1, 20)
	q := l.dial()
	l.send(q, append([]byte{2}, make([]byte, 23)...))
	b, err := io.ReadAll(q)
	if err != nil || len(b) != 3*statsRecordLen {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	for i, want := range [][6]uint64{{0, 0, 0, 0, 0, 0}, {1, 1, 10, 0, 0, 0}, {7, 1, 0, 20, 0, 0}} {
		t.Run(fmt.Sprint("record ", i), func(t *testing.T) {
			for j, w := range want {
				if got := le64(b[i*statsRecordLen+8*j:]); got != w {
					t.Errorf("record %d, field %d: %d, want %d", i, j, got, w)
				}
			}
		})
	}
}

func TestPingOfAStoppedServer(t *testing.T) {
	l := serve(t, nil)
	l.stop()
	if err := l.server.Ping(t.Context(), time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
