package truth

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// slotScenarios ask whose slots of a region are.
func slotScenarios() []scenario {
	return []scenario{
		{"71 forked writers and 64 slots", fast, forkedWriters},
		{"a dead one's pid and name, seen once", fast, sameNameOnce},
		{"a dead one's pid and name, across a takeover of ttmond", fast | alone, sameNameTakeover},
		{"a container's successor, seen once", 0, containerSuccessor},
		{"two containers in one slot", fast, sharedSlot},
		{"records erased by a newer release", 0, erased},
		{"a wrapped counter", 0, wrapped},
		{"what the dead left in a live container's own /dev/shm", fast | alone, privateShm},
		{"a container with its own /dev/shm", 0, ownShm},
		{"layout 4, all threads counted", 0, layoutFour},
	}
}

const node = "device /dev/tenstorrent/0"

func forkedWriters(s *stage) {
	s.on("p150a")
	p := s.metal(metal.Options{}, node, "open @", "alloc @ dram 1M")
	for range 70 {
		s.sendCommands(p, "fork alloc @ dram 1M")
	}
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 71 * mib}, model.DRAM)
}

// reusePID starts a process with a pid that a dead one had, outside of any
// container.
func (s *stage) reusePID(pid int, commands ...string) *metal.Process {
	s.Helper()
	for range 400 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(fmt.Sprint(pid-1)), 0); err != nil {
			s.Skipf("needs to choose a pid: %v", err)
		}
		p := s.metal(metal.Options{})
		if p.PID == pid {
			s.sendCommands(p, commands...)
			return p
		}
		_ = p.End()
	}
	s.Fatalf("pid %d was not to be had again", pid)
	return nil
}

func sameNameOnce(s *stage) {
	s.on("p150a")
	dead := s.metal(metal.Options{}, node, "name python", "open @", "alloc @ dram 1G")
	s.slay(dead)
	successor := s.reusePID(dead.PID, node, "name python", "open @", "alloc @ dram 7M")
	snap := s.snapshot()
	truth := ttnn.Held{"dram": 7 * mib}
	s.device(snap, 0, truth, model.DRAM)
	s.process(snap, successor.PID, 0, truth, model.DRAM)
}

// sameNameTakeover: a ttmond that was watching knows what is whose, and so
// does its successor.
func sameNameTakeover(s *stage) {
	s.on("p150a")
	d := s.daemon()
	dead := s.metal(metal.Options{}, node, "name python", "open @", "alloc @ dram 1G")
	s.slay(dead)
	s.until("ttmond has seen what it left", func() bool { return len(s.daemonSnapshot(d).StaleSlots) == 1 })
	successor := s.reusePID(dead.PID, node, "name python", "open @", "alloc @ dram 7M")
	truth := ttnn.Held{"dram": 7 * mib}
	s.until("ttmond has seen the successor", func() bool {
		n, _, known := s.daemonSnapshot(d).Devices[0].Memory.Pools[model.DRAM].Used.Best()
		return known && n > 0
	})
	s.device(s.daemonSnapshot(d), 0, truth, model.DRAM)
	s.reloadDaemon(d)
	snap := s.daemonSnapshot(d)
	s.device(snap, 0, truth, model.DRAM)
	s.process(snap, successor.PID, 0, truth, model.DRAM)
	n, _, _ := snap.Devices[0].Memory.Pools[model.DRAM].Used.Best()
	s.fact("what is known of it after the takeover", fmt.Sprint(7*mib), fmt.Sprint(n))
	s.fact("dead ones after the takeover", "1", fmt.Sprint(len(snap.StaleSlots)))
	for _, g := range snap.StaleSlots {
		s.fact("whose bytes are left, after the takeover", fmt.Sprint(dead.PID), fmt.Sprint(g.PID))
	}
}

func containerSuccessor(s *stage) {
	s.on("p150a")
	o := metal.Options{Container: true, PID: 7}
	s.slay(s.metal(o, node, "name dead", "open @", "alloc @ dram 1G"))
	successor := s.metal(o, node, "name successor", "open @", "alloc @ dram 7M")
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 7 * mib}, model.DRAM)
	s.process(snap, successor.PID, 0, ttnn.Held{"dram": 7 * mib}, model.DRAM)
}

func sharedSlot(s *stage) {
	s.on("p150a")
	o := metal.Options{Container: true, PID: 7}
	a := s.metal(o, node, "open @", "alloc @ dram 100M")
	s.metal(o, node, "open @", "alloc @ dram 30M")
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 130 * mib}, model.DRAM)
	for i := range snap.Processes {
		if snap.Processes[i].PID == a.PID {
			s.fact("a figure for one of them", "false", fmt.Sprint(snap.Processes[i].Devices[0].Memory[model.DRAM].Known()))
		}
	}
}

func erased(s *stage) {
	s.on("p150a")
	s.metal(metal.Options{Layout: 3}, node, "lib "+s.install("0.81.1"), "open @", "alloc @ dram 128M")
	s.metal(metal.Options{Layout: 4}, node, "open @", "alloc @ dram 5M")
	s.device(s.snapshot(), 0, ttnn.Held{"dram": 133 * mib}, model.DRAM)
}

// install makes a directory look like an installed ttnn and returns the path
// of its library.
func (s *stage) install(release string) string {
	s.Helper()
	top, err := os.MkdirTemp(bin, "ttnn-") // which other users can reach
	if err != nil {
		s.Fatal(err)
	}
	if err := os.Chmod(top, 0o755); err != nil {
		s.Fatal(err)
	}
	site := filepath.Join(top, "lib/python3.12/site-packages")
	lib := filepath.Join(site, "ttnn/build/lib/libtt_metal.so")
	for _, dir := range []string{filepath.Dir(lib), filepath.Join(site, "ttnn-"+release+".dist-info")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	if err := os.WriteFile(lib, make([]byte, os.Getpagesize()), 0o644); err != nil {
		s.Fatal(err)
	}
	return lib
}

func wrapped(s *stage) {
	const atSlot0DRAM = 856 + 8
	s.on("p150a")
	p := s.metal(metal.Options{}, node, "open @", "alloc @ dram 1M")
	s.sendCommands(p, fmt.Sprintf("store @ %d %d", atSlot0DRAM, uint64(1<<64-4096)))
	s.device(s.snapshot(), 0, ttnn.Held{"dram": mib}, model.DRAM)
}

// privateShm: the dead left something in a region that only a live container
// has. From the host it is found all the same.
func privateShm(s *stage) {
	s.on("p150a")
	p := s.metal(metal.Options{Container: true, PID: 7, PrivateShm: true}, node, "open @", "alloc @ dram 3M")
	s.sendCommands(p, "fork alloc @ dram 5M")
	s.killChildren(p.PID)
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 3 * mib}, model.DRAM)
	var list struct {
		Regions []struct {
			StaleSlots []struct {
				DRAM uint64 `json:"dram_bytes"`
			} `json:"ghosts"`
		}
	}
	r := s.ttmon("stale", "--json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		s.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	found := uint64(0)
	for _, reg := range list.Regions {
		for _, g := range reg.StaleSlots {
			found += g.DRAM
		}
	}
	s.figure("ttmon stale on the host", 5*mib, model.ExactBytes(found), nil)
	s.fact("its region is in use", "true", fmt.Sprint(strings.Contains(s.ttmon("stale").out, "in use")))
}

// killChildren kills the children of a process, which it does not wait for.
func (s *stage) killChildren(pid int) {
	s.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	killed := 0
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				s.Fatal(err)
			}
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				s.Fatal(err)
			}
			killed++
			s.until("the child is dead", func() bool {
				maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", child))
				return err != nil || len(maps) == 0
			})
		}
	}
	if killed == 0 {
		s.Fatalf("process %d has no children", pid)
	}
}

func ownShm(s *stage) {
	s.on("p150a")
	s.metal(metal.Options{}, node, "open @", "alloc @ dram 5M")
	s.metal(metal.Options{Container: true, PID: 7, PrivateShm: true}, node, "open @", "alloc @ dram 100M")
	s.device(s.snapshot(), 0, ttnn.Held{"dram": 105 * mib}, model.DRAM)
}

func layoutFour(s *stage) {
	s.on("p150a")
	p := s.metal(metal.Options{Layout: 4}, node, "open @", "alloc @ dram 5M", "alloc @ l1 1M")
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 5 * mib, "l1": mib}, model.DRAM, model.L1)
	s.process(snap, p.PID, 0, ttnn.Held{"dram": 5 * mib, "l1": mib}, model.DRAM, model.L1)
}
