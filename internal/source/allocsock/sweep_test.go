package allocsock

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// A client that is waited for is read within two turns, although clients of the same
// user that are swept have sent more than its share lasts for.
func TestSweptDoNotStarveOthers(t *testing.T) {
	l := serve(t, nil)
	busy := make([]*net.UnixConn, 64)
	for i := range busy {
		busy[i] = l.dial()
	}
	quiet := l.dial()
	l.until("all connections", func() bool { return int(l.server.Stats().Connections) == len(busy)+1 })
	l.send(quiet, own(allocMsg(1, 64, 10, 0)).pack(144))
	l.await(1, model.DRAM, 10)
	l.stop()

	s := l.server
	s.now = time.Now()
	for c := range s.conns {
		if c.writer.Pid != 0 {
			continue // the quiet one, which has sent something
		}
		for range hotWakes {
			s.considerSweeping(c)
		}
	}
	if n := int(s.count.hot.Load()); n != len(busy) {
		t.Fatalf("%d connections are swept, want %d", n, len(busy))
	}
	for i, c := range busy {
		var all []byte
		for k := range 900 {
			all = append(all, own(allocMsg(0, uint64(i*900+k+1)<<12, 1, 0)).pack(144)...)
		}
		l.send(c, all)
	}
	l.send(quiet, own(allocMsg(2, 64, 20, 0)).pack(144))
	events := make([]unix.EpollEvent, 512)
	for range 2 {
		n, err := epollNow(s.epoll, events)
		if err != nil {
			t.Fatal(err)
		}
		s.now = time.Now()
		s.startTurn()
		for i := range events[:n] {
			s.dispatch(&events[i])
		}
		s.serveUsers()
		s.endTurn()
	}
	if got := l.ledger.Device(2).Bytes[model.DRAM]; got != 20 {
		t.Errorf("after two turns device 2 holds %d bytes, want 20", got)
	}
}
