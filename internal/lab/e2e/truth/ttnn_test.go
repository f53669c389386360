package truth

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

var (
	open    = ttnn.Step{"do": "open"}
	tracked = []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace}
)

func alloc(name, pool string, bytes int) ttnn.Step {
	return ttnn.Step{"do": "alloc", "name": name, "pool": pool, "bytes": bytes}
}

// ttnnScenarios are what the real ttnn does, each with both releases.
func ttnnScenarios() (list []scenario) {
	for _, c := range []struct {
		name string
		fast bool
		play func(s *stage, release string)
	}{
		{"a tensor in DRAM", true, oneTensor},
		{"all pools", false, allPools},
		{"tensors freed", false, freed},
		{"main allocates, a worker frees, 20 times", true, workerFrees},
		{"a worker allocates", false, workerAllocates},
		{"an operation and its circular buffers", false, circularBuffers},
		{"L1 in lockstep on every core", false, lockstep},
		{"killed", true, killed},
		{"closed, and still there", false, closed},
		{"two programs on a chip", false, twoPrograms},
		{"one killed beside another", false, killedBeside},
		{"statistics off by environment", false, switchedOff},
		{"statistics off from inside", true, switchedOffInside},
		{"renamed", false, renamed},
		{"graph capture without dispatch", false, captureNoDispatch},
		{"graph capture begun before open", false, captureBeforeOpen},
		{"seen from a container", false, seenFromContainer},
		{"seen by another user", false, seenByAnother},
		{"without the device open", false, withoutDevice},
		{"n300 mesh", false, mesh("n300", 1, 2)},
		{"p300 mesh, placed by order", false, mesh("p300c", 1, 2)},
		{"p300 mesh after a kill", false, meshAfter("p300c", true, 1, 2)},
		{"p300 mesh after a clean exit", false, meshAfter("p300c", false, 1, 2)},
		{"with libttmon, workers allocate and free", false, withLibrary},
		{"with libttmon, a capture without dispatch", false, withLibraryCapture},
		{"closed tensor by tensor with libttmon", false, withLibraryFreed},
	} {
		for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
			list = append(list, scenario{
				name: fmt.Sprintf("ttnn %s: %s", release, c.name),
				how:  when(c.fast && release == ttnn.Newest, fast),
				play: func(s *stage) { c.play(s, release) },
			})
		}
	}
	galaxy := scenario{name: "ttnn 0.81.1: Galaxy mesh of 32, killed", play: func(s *stage) {
		meshAfter("galaxy-wormhole", true, 8, 4)(s, ttnn.Newest)
	}}
	return append(list, galaxy)
}

func oneTensor(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 128*mib))
	s.agrees(j, release)
	s.held(j, model.DRAM)
}

// agrees checks the program's own account against its allocator, which takes
// no less.
func (s *stage) agrees(j *ttnn.Job, release string) {
	s.Helper()
	if release != ttnn.Newest {
		return // its view is not available in Python
	}
	r := s.do(j, ttnn.Step{"do": "view"})
	for pool, held := range r.Held {
		if r.View[pool] < held {
			s.Errorf("%s: the allocator gave out %d bytes, the program holds %d", pool, r.View[pool], held)
		}
	}
}

func allPools(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, ttnn.Step{"do": "open", "l1_small": 32768, "trace": mib},
		alloc("a", "dram", 4*mib), alloc("b", "l1", 2*mib), alloc("c", "l1_small", 8*2048), alloc("d", "trace", 64<<10))
	s.agrees(j, release)
	s.held(j, tracked...)
}

func freed(s *stage, release string) {
	j := s.on("n150").ttnn(release)
	s.do(j, open, alloc("a", "dram", 4*mib), alloc("b", "dram", 2*mib), alloc("c", "l1", mib),
		ttnn.Step{"do": "free", "name": "a"}, ttnn.Step{"do": "free", "name": "c"})
	s.held(j, model.DRAM, model.L1)
}

func workerFrees(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open)
	s.allocAndFree(j)
	s.agrees(j, release)
	s.held(j, model.DRAM)
}

// allocAndFree allocates a GiB on the main thread and frees it on another, 20
// times.
func (s *stage) allocAndFree(j *ttnn.Job) {
	s.Helper()
	for range 20 {
		s.do(j, alloc("a", "dram", 1024*mib), ttnn.Step{"do": "free", "name": "a", "thread": true})
	}
}

func elsewhere(name string, bytes int) ttnn.Step {
	return ttnn.Step{"do": "alloc", "name": name, "pool": "dram", "bytes": bytes, "thread": true}
}

func workerAllocates(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 2*mib), elsewhere("b", 32*mib))
	s.agrees(j, release)
	s.held(j, model.DRAM)
}

func circularBuffers(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	r := s.do(j, open, alloc("a", "l1", 2*mib), ttnn.Step{"do": "capture", "mode": "NORMAL"},
		ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}}, ttnn.Step{"do": "end_capture"})
	snap := s.held(j, model.L1)
	m := &snap.Devices[0].Memory
	means := map[string]model.CBMeaning{ttnn.Newest: model.CBPartly, ttnn.AllThreads: model.CBCached}[release]
	s.fact("what CB counts", string(means), string(m.CB))
	if release == ttnn.Newest { // the older one tells a capture nothing of them
		s.figure("CB", r.CB, m.Pools[model.CB].Used, s.beside(snap, 0))
	}
}

// lockstep: one small buffer takes its range on every core, so that no share
// of L1 may be shown where only the sizes of buffers are known.
func lockstep(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "l1", 2048))
	snap := s.held(j, model.L1)
	use := &snap.Devices[0].Memory.Pools[model.L1]
	_, _, ok := words.Ratio(model.L1, use)
	s.fact("a share of L1", "false", fmt.Sprint(ok))
	s.fact("occupied L1", "false", fmt.Sprint(use.Occupied.Known()))
}

func killed(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 16*mib))
	s.kill(j)
	snap := s.snapshot()
	s.device(snap, 0, nil, model.DRAM)
	s.ghosts(snap, 1, 16*mib)
	for _, n := range words.Notices(snap) {
		if strings.Contains(n.Text, "python") {
			s.fact("when it is said to have died", "false", fmt.Sprint(strings.Contains(n.Text, " min ago")))
		}
	}
}

// ghosts checks what the dead left: on how many chips, and how much of DRAM
// on each.
func (s *stage) ghosts(snap *model.Snapshot, chips int, dram uint64) {
	s.Helper()
	s.fact("chips that the dead left something on", fmt.Sprint(chips), fmt.Sprint(len(snap.StaleSlots)))
	for _, g := range snap.StaleSlots {
		if v, why := judge(dram, g.Bytes[model.DRAM], nil); v != right {
			s.figure(fmt.Sprintf("left on device %d", g.Device), dram, g.Bytes[model.DRAM], nil)
			s.Log(why)
			return
		}
	}
	if len(snap.StaleSlots) > 0 {
		s.figure("left on each", dram, snap.StaleSlots[0].Bytes[model.DRAM], nil)
	}
}

// closed: it holds nothing, and only it can know.
func closed(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 4*mib), ttnn.Step{"do": "close"})
	s.held(j, model.DRAM)
}

func twoPrograms(s *stage, release string) {
	a := s.on("p150a").ttnn(release)
	b := s.ttnn(release)
	s.do(a, open, alloc("a", "dram", 4*mib))
	s.do(b, open, alloc("a", "dram", 8*mib))
	snap := s.snapshot()
	s.process(snap, a.PID, 0, a.Held, model.DRAM)
	s.process(snap, b.PID, 0, b.Held, model.DRAM)
	s.device(snap, 0, ttnn.Held{"dram": 12 * mib}, model.DRAM)
}

func killedBeside(s *stage, release string) {
	a := s.on("p150a").ttnn(release)
	b := s.ttnn(release)
	s.do(a, open, alloc("a", "dram", 4*mib))
	s.do(b, open, alloc("a", "dram", 8*mib))
	s.kill(a)
	s.held(b, model.DRAM)
	s.ghosts(s.snapshot(), 1, 4*mib)
}

func switchedOff(s *stage, release string) {
	j := s.on("p150a").ttnn(release, "TT_METAL_SHM_TRACKING_DISABLED=1")
	s.do(j, open, alloc("a", "dram", 128*mib))
	s.held(j, model.DRAM)
}

func switchedOffInside(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, ttnn.Step{"do": "env", "name": "TT_METAL_SHM_TRACKING_DISABLED", "value": "1"}, open, alloc("a", "dram", 128*mib))
	s.held(j, model.DRAM)
}

// renamed: the slot has the name of the start. An operator has opened the
// region to all.
func renamed(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 128*mib), ttnn.Step{"do": "rename", "name": "trainer"})
	snap := s.held(j, model.DRAM)
	s.fact("stale", "0", fmt.Sprint(len(snap.StaleSlots)))
	s.run("chmod", "666", fmt.Sprintf("/dev/shm/tt_device_%d_memory", s.chips[0].ID))
	snap = s.decode(s.asNobody("smi", "--json", "--direct"))
	s.device(snap, 0, j.Held, model.DRAM)
	s.fact("stale, to another user", "0", fmt.Sprint(len(snap.StaleSlots)))
	s.neverNothing(s.asNobody("stale", "--direct"))
}

// neverNothing checks that ttmon stale does not claim what it cannot know.
func (s *stage) neverNothing(r said) {
	s.Helper()
	s.fact(`"nothing stale" is said`, "false", fmt.Sprint(strings.Contains(r.out, "nothing stale")))
}

func captureNoDispatch(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, ttnn.Step{"do": "capture", "mode": "NO_DISPATCH"}, alloc("a", "dram", 64*mib))
	s.held(j, model.DRAM) // while it lasts
	s.do(j, ttnn.Step{"do": "end_capture"}, alloc("b", "dram", 2*mib))
	s.held(j, model.DRAM)
}

func captureBeforeOpen(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, ttnn.Step{"do": "capture", "mode": "NORMAL"}, open, ttnn.Step{"do": "end_capture"}, alloc("a", "dram", 64*mib))
	s.held(j, model.DRAM)
}

func seenFromContainer(s *stage, release string) {
	j := s.on("p150a").ttnn(release)
	s.do(j, open, alloc("a", "dram", 128*mib))
	snap := s.decode(s.inContainer("smi", "--json"))
	s.device(snap, 0, j.Held, model.DRAM)
	s.neverNothing(s.inContainer("stale"))
}

func seenByAnother(s *stage, release string) {
	j := s.on("p150a,n150").ttnn(release)
	s.do(j, open, alloc("a", "dram", 128*mib))
	snap := s.decode(s.asNobody("smi", "--json", "--direct"))
	s.device(snap, 0, j.Held, model.DRAM)
	s.neverNothing(s.asNobody("stale", "--direct"))
}

// withoutDevice: a mock run. The chip that it plays is one of this host, which
// has no process on it.
func withoutDevice(s *stage, release string) {
	j := s.on("p150a").launch(release, nil)
	s.do(j, open, alloc("a", "dram", 128*mib))
	s.device(s.snapshot(), 0, nil, model.DRAM)
}

// mesh: every chip holds the same; which is which follows from the order of
// the devices that are open, where the driver does not tell.
func mesh(boards string, shape ...int) func(*stage, string) {
	return func(s *stage, release string) {
		j := s.on(boards).ttnn(release)
		s.do(j, ttnn.Step{"do": "open", "mesh": shape}, alloc("a", "dram", 4*mib))
		s.placed(s.snapshot(), ttnn.Held{"dram": 4 * mib})
	}
}

// placed checks that every chip is where the simulator has it, and holds so
// much there.
func (s *stage) placed(snap *model.Snapshot, held ttnn.Held) {
	s.Helper()
	for _, ch := range s.chips {
		chip := snap.Device(ch.Device).Chips[ch.Slot]
		what := fmt.Sprintf("device %d chip %d", ch.Device, ch.Slot)
		if v, _ := judge(held["dram"], chip.Memory.Pools[model.DRAM].Used, s.beside(snap, ch.Device)); v == wrong || len(s.chips) <= 4 {
			s.figure(what+" dram", held["dram"], chip.Memory.Pools[model.DRAM].Used, s.beside(snap, ch.Device))
		}
		if id, ok := chip.ID.Get(); ok {
			s.fact(what+" is", fmt.Sprint(ch.ID), fmt.Sprint(id))
		}
	}
}

// meshAfter: what was on a mesh is gone when its program is, however it ended.
// Chips that could be one of several are no mock run.
func meshAfter(boards string, kill bool, shape ...int) func(*stage, string) {
	return func(s *stage, release string) {
		j := s.on(boards).ttnn(release)
		s.do(j, ttnn.Step{"do": "open", "mesh": shape}, alloc("a", "dram", 4*mib))
		chips := 0
		if kill {
			chips = len(s.chips)
			s.kill(j)
		} else if err := j.End(); err != nil {
			s.Fatal(err)
		}
		snap := s.snapshot()
		for i := range snap.Devices {
			if u := snap.Devices[i].Memory.Pools[model.DRAM].Used; !u.Exactly(0) || i < 2 {
				s.figure(fmt.Sprintf("device %d dram", i), 0, u, s.beside(snap, i))
			}
		}
		s.ghosts(snap, chips, 4*mib)
		lines := 0
		for _, n := range words.Notices(snap) {
			if strings.Contains(n.Text, "mock") {
				s.fact("what is said of its chips", "", n.Text)
			}
			if strings.Contains(n.Text, "dead process") {
				lines++
			}
		}
		s.fact("lines about the dead", fmt.Sprint(min(chips, 1)), fmt.Sprint(lines))
	}
}

// library starts a program with libttmon in it.
func (s *stage) library(release string) *ttnn.Job {
	s.Helper()
	s.on("p150a")
	return s.launch(release, nil, filepath.Join(bin, "ttmon-sim"), "open", "--", filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
}

// exact is held, where every figure must be exact.
func (s *stage) exact(j *ttnn.Job) {
	s.Helper()
	snap := s.held(j, model.DRAM)
	_, bound, known := snap.Devices[0].Memory.Pools[model.DRAM].Used.Best()
	s.fact("the figure is", "exact", map[bool]string{true: bound.String(), false: "missing"}[known])
}

func withLibrary(s *stage, release string) {
	j := s.library(release)
	s.do(j, open, alloc("keep", "dram", 2*mib), elsewhere("b", 32*mib))
	s.allocAndFree(j)
	s.agrees(j, release)
	s.exact(j)
}

func withLibraryCapture(s *stage, release string) {
	j := s.library(release)
	s.do(j, open, alloc("keep", "dram", 2*mib), ttnn.Step{"do": "capture", "mode": "NO_DISPATCH"}, alloc("a", "dram", 64*mib))
	s.exact(j)
	s.do(j, ttnn.Step{"do": "end_capture"}, alloc("b", "dram", 2*mib))
	s.exact(j)
}

func withLibraryFreed(s *stage, release string) {
	j := s.library(release)
	s.do(j, open, alloc("a", "dram", 2*mib), alloc("b", "dram", 2*mib), ttnn.Step{"do": "free", "name": "a"})
	s.exact(j)
	s.do(j, ttnn.Step{"do": "free", "name": "b"})
	s.exact(j)
}
