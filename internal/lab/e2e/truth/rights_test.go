package truth

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// rightsScenarios ask what a user may know, and whose word counts.
func rightsScenarios() []scenario {
	return []scenario{
		{"idle boards, to another user", fast, idleBoards},
		{"what other users learn of a program", fast | alone, whoLearnsWhat},
		{"a region that everybody may read, its process renamed", fast, renamedShared},
		{"from a container that shares /dev/shm", fast, fromContainer},
		{"ttmon mem --stale of an ordinary user, no ttmond", fast, staleAlone},
		{"ttmon mem --stale of an ordinary user, with ttmond", fast | alone, staleWithDaemon},
		{"a user shut out of another's region", 0, shutOut},
		{"a reporter", alone, reporter},
		{"buffers of a reporter", fast | alone, reportedBuffers},
		{"a reporter without the device", fast | alone, reportsWithoutDevice},
		{"a reporter of more than there is", fast | alone, reportsTooMuch},
		{"a reporter that also accounts in shared memory", alone, twice},
	}
}

func idleBoards(s *stage) {
	s.on("p150a,n150")
	p := s.metal(metal.Options{}, node, "open @", "alloc @ dram 1M")
	if err := p.End(); err != nil {
		s.Fatal(err)
	}
	snap := s.decode(s.asNobody("smi", "--json", "--direct"))
	s.device(snap, 0, nil, model.DRAM)
	s.device(snap, 1, nil, model.DRAM)
	s.fact("device 0 is tracked", string(model.TrackOK), string(snap.Devices[0].Memory.Tracking))
}

func renamedShared(s *stage) {
	s.on("p150a")
	s.metal(metal.Options{}, node, "name first", "open @", "alloc @ dram 128M", "name second")
	s.run("chmod", "666", fmt.Sprintf("/dev/shm/tt_device_%d_memory", s.chips[0].ID))
	snap := s.decode(s.asNobody("smi", "--json", "--direct"))
	s.device(snap, 0, ttnn.Held{"dram": 128 * mib}, model.DRAM)
	s.neverNothing(s.asNobody("stale", "--direct"))
}

func fromContainer(s *stage) {
	s.on("p150a")
	s.metal(metal.Options{}, node, "open @", "alloc @ dram 128M")
	s.device(s.decode(s.inContainer("smi", "--json")), 0, ttnn.Held{"dram": 128 * mib}, model.DRAM)
	s.neverNothing(s.inContainer("stale"))
}

// leaveGhost lets root's process die on device 0.
func (s *stage) leaveGhost() {
	s.Helper()
	s.on("p150a")
	s.slay(s.metal(metal.Options{}, node, "name python", "open @", "alloc @ dram 128M"))
}

func staleAlone(s *stage) {
	s.leaveGhost()
	r := s.asNobody("stale", "--direct")
	s.neverNothing(r)
	s.fact("exit code", "4", fmt.Sprint(r.code))
}

func staleWithDaemon(s *stage) {
	s.leaveGhost()
	d := s.daemon()
	s.until("ttmond has seen it", func() bool { return len(s.daemonSnapshot(d).StaleSlots) == 1 })
	r := s.asNobody("stale", "--daemon", d.api)
	s.neverNothing(r)
	s.fact("python's 128 MiB are listed", "true", fmt.Sprint(strings.Contains(r.out, "python") && strings.Contains(r.out, "128 MiB")))
	s.fact("exit code", "0", fmt.Sprint(r.code))
	r = s.asNobody("stale", "--remove", "--yes", "--daemon", d.api)
	s.fact("exit code of removing another's", "4", fmt.Sprint(r.code))
	_, err := os.Stat(fmt.Sprintf("%s/dev/shm/tt_device_%d_memory", s.host.Root(), s.chips[0].ID))
	s.fact("the region is still there", "true", fmt.Sprint(err == nil))
}

func shutOut(s *stage) {
	s.on("p150a")
	lib := "lib " + s.install("0.81.1")
	s.metal(metal.Options{UID: 1000}, node, "open @", "alloc @ dram 1M")
	other := s.metal(metal.Options{UID: 1001}, node, lib)
	if _, err := other.Do(fmt.Sprintf("open %d", s.chips[0].ID)); err == nil {
		s.Fatal("the scenario does not work: another user attached")
	}
	s.device(s.snapshot(), 0, ttnn.Held{"dram": 64 * mib}, model.DRAM) // the other one holds more, anywhere
}

func reporter(s *stage) {
	s.on("p150a")
	d := s.daemon()
	s.ctl("run", "name=old,devices=0,kind=report,dram=3G,l1=20M,buffers=50,socket="+d.alloc)
	s.until("ttmond has heard it", func() bool { return len(s.daemonSnapshot(d).Processes) == 1 })
	var snap *model.Snapshot
	s.until("ttmond has joined it", func() bool {
		snap = s.daemonSnapshot(d)
		return snap.Devices[0].Memory.Pools[model.L1].Used.Positive()
	})
	s.device(snap, 0, ttnn.Held{"dram": 3 << 30, "l1": 20 * mib}, model.DRAM, model.L1)
}

// reportedBuffers: its own device 0 is the host's second one.
func reportedBuffers(s *stage) {
	s.on("p150a,p150a")
	d := s.daemon()
	s.ctl("run", "name=old,devices=1,kind=report,dram=3M,socket="+d.alloc)
	var answer struct {
		Buffers []struct {
			Index *int
			Size  uint64 `json:"size_bytes"`
		}
	}
	s.until("ttmond has placed it", func() bool {
		snap := s.daemonSnapshot(d)
		if len(snap.Processes) != 1 {
			return false
		}
		conn := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", d.api)
		}}}
		defer conn.CloseIdleConnections()
		r, err := conn.Get(fmt.Sprintf("http://ttmond/v1/processes/%d/buffers", snap.Processes[0].PID))
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return json.NewDecoder(r.Body).Decode(&answer) == nil && len(answer.Buffers) == 1 && answer.Buffers[0].Index != nil
	})
	s.fact("its buffer is on device", "1", fmt.Sprint(*answer.Buffers[0].Index))
	s.figure("its buffer", 3*mib, model.ExactBytes(answer.Buffers[0].Size), nil)
	s.device(s.daemonSnapshot(d), 1, ttnn.Held{"dram": 3 * mib}, model.DRAM)
}

// reportsWithoutDevice: this very process, which has no device open, says that it
// holds 5 GiB.
func reportsWithoutDevice(s *stage) {
	s.on("p150a")
	d := s.daemon()
	conn, err := net.Dial("unix", d.alloc)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	message := make([]byte, 144) // the old protocol: an allocation in DRAM of its device 0
	message[0] = 1
	binary.LittleEndian.PutUint64(message[8:], 5<<30)
	binary.LittleEndian.PutUint32(message[20:], uint32(os.Getpid()))
	binary.LittleEndian.PutUint64(message[24:], 4096)
	if _, err := conn.Write(message); err != nil {
		s.Fatal(err)
	}
	var snap *model.Snapshot
	s.until("ttmond has heard it", func() bool {
		snap = s.daemonSnapshot(d)
		return len(snap.Processes) == 1
	})
	s.device(snap, 0, nil, model.DRAM)
}

func reportsTooMuch(s *stage) {
	s.on("p150a")
	d := s.daemon()
	s.ctl("run", "name=liar,devices=0,kind=report,dram=100G,socket="+d.alloc)
	var snap *model.Snapshot
	s.until("ttmond has heard it", func() bool {
		snap = s.daemonSnapshot(d)
		return len(snap.Processes) == 1 && len(s.beside(snap, 0)) > 0
	})
	s.device(snap, 0, nil, model.DRAM)
}

// twice: the same process speaks in two ways. They are not added.
func twice(s *stage) {
	s.on("p150a")
	d := s.daemon()
	s.metal(metal.Options{}, node, "open @", "alloc @ dram 5M")
	s.ctl("run", "name=old,devices=0,kind=report,dram=3M,socket="+d.alloc)
	var snap *model.Snapshot
	s.until("ttmond has heard both", func() bool {
		snap = s.daemonSnapshot(d)
		n, _, known := snap.Devices[0].Memory.Pools[model.DRAM].Used.Best()
		return len(snap.Processes) == 2 && known && n > 5*mib
	})
	s.device(snap, 0, ttnn.Held{"dram": 8 * mib}, model.DRAM)
}
