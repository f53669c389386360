package truth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// saidScenarios ask whether sentences are true, where there is no number.
func saidScenarios() []scenario {
	return []scenario{
		{"a board without its driver", fast, unbound},
		{"blocks of equal size", fast, equalBlocks},
		{"a recording that is served at an address", 0, servedAt},
	}
}

// unbound: the board is there, and no view says that there is none.
func unbound(s *stage) {
	s.on("p150a")
	bus := s.snapshot().Devices[0].BusID
	s.ctl("unbind", "0")
	r := s.ttmon("smi")
	said := r.out + r.err
	s.fact("the board is named", "true", fmt.Sprint(strings.Contains(said, bus)))
	s.fact("there is said to be no device", "false", fmt.Sprint(strings.Contains(strings.ToLower(said), "no tenstorrent device")))
}

// equalBlocks: of 30 blocks of one size some are listed, and none of the others is
// smaller.
func equalBlocks(s *stage) {
	s.on("p150a")
	a := s.allocates(filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
	a.do("make %d %d", uint64(1)<<32, s.chips[0].ID)
	a.do("fill 30 %d", mib)
	pid := s.snapshot().Processes
	for i := range pid {
		r := s.ttmon("mem", "-p", fmt.Sprint(pid[i].PID))
		if r.code != 0 {
			continue // ttmon run itself
		}
		s.fact("others are said to be smaller", "false", fmt.Sprint(strings.Contains(r.out, "smaller")))
		s.fact("others are said to be no larger", "true", fmt.Sprint(strings.Contains(r.out, "none of them larger")))
		return
	}
	s.fact("a process with blocks", "there", "not there")
}

// servedAt: the address is that of the command line, behind a blank.
func servedAt(s *stage) {
	s.on("p150a")
	file := filepath.Join(s.TempDir(), "run.ttrec")
	if r := s.ttmon("record", "-o", file, "--duration", "2s"); r.code != 0 {
		s.Fatalf("ttmon record: %s%s", r.out, r.err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := s.host.Command(context.Background(), filepath.Join(bin, "ttmon"), "replay", file, "--serve", address)
	s.start(cmd)
	served := errors.New("not yet")
	for limit := time.Now().Add(time.Minute); served != nil && time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		var c net.Conn
		if c, served = net.Dial("tcp", address); served == nil {
			c.Close()
		}
	}
	s.fact("the page is at that address", "<nil>", fmt.Sprint(served))
}
