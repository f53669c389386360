package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sim"
	"github.com/ttmon/ttmon/internal/sim/metal"
)

// TestContainerPIDsInRegions: a container that shares /dev/shm writes its own
// pids. On the host pid 1 is alive for sure, and another process.
func TestContainerPIDsInRegions(t *testing.T) {
	eachWriter(t, func(t *testing.T, o metal.Options) {
		o.Container = true
		c := newScriptedHost(t, sim.Options{})
		p := c.play(o, "name inside", "open @", "alloc @ dram 100M")
		s := c.shows()
		for _, q := range s.Processes {
			if q.PID == 1 {
				t.Errorf("the container's memory was given to the host's init: %+v", q)
			}
		}
		c.kill(p)
		c.shows(fmt.Sprint("inside:", 100<<20))
	})
}

// rarePID is a pid in a container that hardly a process of the host has: of an
// ordinary user's hosts not all processes can be read, and the slot could be theirs.
const rarePID = 31007

// TestContainersAdoptSlots: successive containers find the dead one's slot by
// its pid and count on top of its bytes.
func TestContainersAdoptSlots(t *testing.T) {
	eachWriter(t, func(t *testing.T, o metal.Options) {
		o.Container, o.PID = true, rarePID
		c := newScriptedHost(t, sim.Options{})
		dead := c.play(o, "name dead", "open @", "alloc @ dram 1000", "alloc @ l1 10")
		c.kill(dead)
		left := "dead:1010"
		c.shows(left)
		w := watch(t, c.host)
		w.until("the ghost is seen", func(s *model.Snapshot) bool { return len(s.StaleSlots) == 1 })
		successor := c.play(o, "name successor", "open @", "alloc @ dram 7")
		// Who has been watching knows what is whose.
		w.until("the successor has what it holds, and the dead what it left", func(s *model.Snapshot) bool {
			return c.truth().check(s) == nil && strings.Join(ghostsIn(s), "") == left
		})
		// Who comes now cannot know what of the slot is the dead one's, and
		// says nothing wrong.
		s := snapshot(t, c.host)
		wantBound(t, "the successor's", c.dram(s, successor), model.Unsure)
		if u := processOf(t, s, successor.PID).Devices[0]; !doubted(u.Doubts, model.SlotMaybeAdopted) {
			t.Errorf("nothing says that a dead one's bytes may be in %+v", u)
		}
	})
}

// TestContainersShareSlot: two live containers with one pid and one region.
func TestContainersShareSlot(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	o := metal.Options{Container: true, PID: rarePID}
	a := c.play(o, "open @", "alloc @ dram 100")
	b := c.play(o, "open @", "alloc @ dram 30")
	s := snapshot(t, c.host)
	wantBytes(t, "used together", used(s), 130)
	for _, p := range []*metal.Process{a, b} {
		if r := c.dram(s, p); r.Known() {
			t.Errorf("process %d alone: %+v", p.PID, r)
		}
	}
	c.wantTracking(s, model.TrackOK)
	if !doubted(processOf(t, s, a.PID).Devices[0].Doubts, model.SlotShared) {
		t.Error("nothing says that they share a slot")
	}
}

// TestContainerWithOwnShm: the region is in the container only.
func TestContainerWithOwnShm(t *testing.T) {
	eachWriter(t, func(t *testing.T, o metal.Options) {
		c := newScriptedHost(t, sim.Options{})
		c.play(o, "open @", "alloc @ dram 5")
		o.Container, o.PID, o.PrivateShm = true, 7, true
		inner := c.play(o, "name inner", "open @", "alloc @ dram 100M", "alloc @ l1 1M")
		c.shows()
		c.do(inner, "free @ dram 1M", "alloc @ trace 3")
		c.shows()
		c.kill(inner) // its /dev/shm goes with it
		c.shows()
	})
}

// TestOtherUsersChip: the first user of a chip owns its region. Another one's
// memory is nowhere, and that is said.
func TestOtherUsersChip(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	first := c.play(metal.Options{UID: 1000}, "lib "+install(t, "0.81.1"), "open @", "alloc @ dram 1M")
	other := c.play(metal.Options{UID: 1001}, "lib "+install(t, "0.81.1"))
	if _, err := other.Do(fmt.Sprintf("open %d", c.chip)); err == nil {
		t.Fatal("the scenario does not work: another user attached")
	}
	s := snapshot(t, c.host)
	wantBytes(t, "the first user's", c.dram(s, first), 1<<20)
	u := processOf(t, s, other.PID).Devices[0]
	if u.Memory[model.DRAM].Known() || !doubted(u.Doubts, model.ShutOut) {
		t.Errorf("the other user: %+v", u)
	}
	c.wantTracking(s, model.TrackPartial, model.ShutOut)
	// An administrator may open the region to all, as it is.
	region := fmt.Sprintf("/dev/shm/tt_device_%d_memory", c.chip)
	if r := runProgram(t, c.host, "chmod", "666", region); r.code != 0 {
		t.Fatal(r.err)
	}
	late := c.play(metal.Options{UID: 1001}, "open @", "alloc @ dram 3M")
	wantBytes(t, "another user's, after chmod", c.dram(snapshot(t, c.host), late), 3<<20)
	c.gone(late)
	// Or, as the note says, make it for all before anybody else does.
	c.gone(first)
	c.gone(other)
	if r := runProgram(t, c.host, "sh", "-c", `rm "$1" && head -c 8576 /dev/zero >"$1" && chmod 666 "$1"`, "sh", region); r.code != 0 {
		t.Fatal(r.err)
	}
	for uid := 1000; uid <= 1001; uid++ {
		c.play(metal.Options{UID: uid}, "open @", fmt.Sprintf("alloc @ dram %dM", uid))
	}
	c.shows()
}

// TestMetalWorkloads: what ttmon-sim starts by itself accounts as ordered, in
// containers and for other users, too.
func TestMetalWorkloads(t *testing.T) {
	hermetic.NeedOtherUsers(t)
	h := start(t, sim.Options{Boards: "n300,p150a", Procs: []string{
		"name=llama,devices=0,kind=metal,dram=2G,l1=30M,l1_small=1M,trace=5M,cb=64K",
		"name=boxed,devices=1,kind=metal,layout=4,dram=1G,pidns,own-shm",
		"name=other,devices=1,kind=metal,dram=3G,user=1000",
	}})
	s := snapshot(t, h)
	for _, ch := range device(t, s, 0).Chips {
		wantBytes(t, "DRAM of a chip of the n300", ch.Memory.Pools[model.DRAM].Used, 2<<30)
	}
	wantBytes(t, "TRACE of both", device(t, s, 0).Memory.Pools[model.Trace].Used, 10<<20)
	wantBytes(t, "DRAM of the p150", device(t, s, 1).Memory.Pools[model.DRAM].Used, 4<<30)
	for name, want := range map[string]uint64{"llama": 4 << 30, "boxed": 1 << 30, "other": 3 << 30} {
		t.Run(name, func(t *testing.T) {
			p := only(t, s, name)
			wantBytes(t, "DRAM of "+name, p.Devices[0].Memory[model.DRAM], want)
			if p.PID == 1 {
				t.Errorf("%s has the host's init's pid", name)
			}
		})
	}
}
