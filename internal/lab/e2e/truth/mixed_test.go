package truth

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// mixedScenarios are combinations: programs that are seen through their
// allocator beside programs that are not, and what is not known of either.
func mixedScenarios() []scenario {
	return []scenario{
		{"a program older than ttmond beside a watched one", fast | alone, olderBeside},
		{"a program under ttmon run beside one without", fast, runBeside},
		{"a program older than ttmond allocates again", fast | alone, olderAllocates},
		{"stale memory in a region that may not be read", fast, staleDenied},
		{"only a program without tt-metal has the device open", fast, onlySleep},
		{"a program that tt-metal is linked into", fast, linkedInto},
		{"a program that tt-metal is linked into, beside a watched one", fast | alone, linkedBeside},
		{"ttnn 0.76.0: with libttmon, a worker allocates", 0, func(s *stage) { libraryWorker(s, ttnn.Middle) }},
		{"ttnn 0.76.0: " + watched + "rows that are padded", alone, watchedOld(ttnn.Middle)},
		{"a program under ttmon run that has all devices open", fast, runOpensAll},
		{"a child without exec under ttmon run", fast, forkedUnderRun},
		{watched + "a mesh whose rows are padded", fast | alone, watchedRows},
		{watched + "what fits into L1_SMALL, and sharded", fast | alone, watchedShards},
		{watched + "circular buffers of the largest program", fast | alone, watchedBuffers},
	}
}

// holds waits until ttmond names a source for a process.
func (s *stage) holds(d *daemon, pid int, source model.Source) (snap *model.Snapshot) {
	s.Helper()
	s.until(fmt.Sprintf("process %d is known by %s", pid, source), func() bool {
		snap = s.daemonSnapshot(d)
		for i := range snap.Processes {
			for _, u := range snap.Processes[i].Devices {
				if snap.Processes[i].PID == pid && u.Source == source && u.Memory[model.DRAM].Positive() {
					return true
				}
			}
		}
		return false
	})
	return snap
}

// sum is what programs hold together.
func sum(jobs ...*ttnn.Job) ttnn.Held {
	all := ttnn.Held{}
	for _, j := range jobs {
		for pool, n := range j.Held {
			all[pool] += n
		}
	}
	return all
}

func olderBeside(s *stage) {
	old := s.on("p150a").ttnn(ttnn.Newest)
	s.do(old, open, alloc("a", "dram", 1024*mib), alloc("b", "l1", mib))
	d := s.watching(ttnnLibrary(s, ttnn.Newest))
	young := s.ttnn(ttnn.Newest)
	s.do(young, open, alloc("a", "dram", 128*mib))
	snap := s.holds(d, young.PID, model.FromUprobe)
	s.device(snap, 0, sum(old, young), model.DRAM, model.L1)
	s.process(snap, old.PID, 0, old.Held, model.DRAM)
	s.process(snap, young.PID, 0, young.Held, model.DRAM)
}

func runBeside(s *stage) {
	plain := s.on("p150a").ttnn(ttnn.Newest)
	s.do(plain, open, alloc("a", "dram", 1024*mib))
	seen := s.launch(ttnn.Newest, nil, filepath.Join(bin, "ttmon-sim"), "open", "--", filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
	s.do(seen, open, alloc("a", "dram", 128*mib))
	snap := s.snapshot()
	s.device(snap, 0, sum(plain, seen), model.DRAM)
	s.process(snap, seen.PID, 0, seen.Held, model.DRAM)
}

// olderAllocates: a pool is read whole when it is next used, and says more than
// what one thread counted.
func olderAllocates(s *stage) {
	j := s.on("p150a").ttnn(ttnn.Newest)
	s.do(j, open, alloc("a", "dram", 64*mib), elsewhere("b", 32*mib))
	d := s.watching(ttnnLibrary(s, ttnn.Newest))
	s.do(j, alloc("c", "dram", 2*mib))
	var snap *model.Snapshot
	s.until("the pool is known", func() bool {
		snap = s.daemonSnapshot(d)
		return snap.Devices[0].Memory.Pools[model.DRAM].Occupied.Known()
	})
	s.device(snap, 0, j.Held, model.DRAM)
	s.process(snap, j.PID, 0, j.Held, model.DRAM)
	s.ownBlocks(d, j)
}

func staleDenied(s *stage) {
	s.on("p150a")
	s.slay(s.metal(metal.Options{}, node, "open @", "alloc @ dram 16M"))
	snap := s.decode(s.asNobody("smi", "--json", "--direct"))
	s.figure("stale on device 0", 16*mib, snap.Devices[0].Memory.Stale, s.beside(snap, 0))
	s.device(snap, 0, nil, model.DRAM)
	csv := s.asNobody("smi", "--query-device=memory.stale", "--format=csv,noheader,nounits", "--direct")
	s.fact("stale in CSV", "[denied]\n", csv.out)
	s.fact("ttmon check with a limit on it", "3", fmt.Sprint(s.asNobody("check", "-w", "memory.stale=1", "--direct").code))
}

func onlySleep(s *stage) {
	s.on("p150a")
	p := s.metal(metal.Options{}, node, "open @", "alloc @ dram 1M")
	if err := p.End(); err != nil {
		s.Fatal(err)
	}
	cmd := s.host.Command(context.Background(), filepath.Join(bin, "ttmon-sim"), "open", "--", "sleep", "1000")
	s.start(cmd)
	var snap *model.Snapshot
	s.until("sleep has the device open", func() bool {
		snap = s.snapshot()
		return len(snap.Processes) == 1
	})
	s.device(snap, 0, nil, model.DRAM)
	s.fact("device 0 is tracked", string(model.TrackOK), string(snap.Devices[0].Memory.Tracking))
}

// linked starts a program that has the device open and mapped, and no library of
// tt-metal: what it holds of the device cannot be known.
func (s *stage) linked() {
	s.Helper()
	s.metal(metal.Options{}, node, "map /dev/tenstorrent/0")
}

// linkedInto: it holds 3 GiB, which is in no account.
func linkedInto(s *stage) {
	s.on("p150a").linked()
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 3 << 30}, model.DRAM, model.L1)
	s.fact("device 0 is tracked", string(model.TrackAbsent), string(snap.Devices[0].Memory.Tracking))
	csv := s.ttmon("smi", "--query-device=memory.used", "--format=csv,noheader,nounits")
	s.fact("used in CSV", "[N/A]\n", csv.out)
	s.fact("ttmon check with a limit on it", "3", fmt.Sprint(s.ttmon("check", "-w", "memory.used=1").code))
}

func linkedBeside(s *stage) {
	d := s.on("p150a").watching(ttnnLibrary(s, ttnn.Newest))
	s.linked()
	j := s.ttnn(ttnn.Newest)
	s.do(j, open, alloc("a", "dram", 128*mib))
	snap := s.holds(d, j.PID, model.FromUprobe)
	s.device(snap, 0, ttnn.Held{"dram": 3<<30 + 128*mib}, model.DRAM)
	s.process(snap, j.PID, 0, j.Held, model.DRAM)
}

// start starts a program that is killed with the scenario.
func (s *stage) start(cmd *exec.Cmd) {
	s.Helper()
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// libraryWorker: releases from 0.72 to 0.78 account for one thread, and keep the
// size of a buffer to themselves.
func libraryWorker(s *stage, release string) {
	j := s.library(release)
	s.do(j, open, alloc("a", "dram", 128*mib), elsewhere("b", 32*mib))
	s.exact(j)
}

// watchedOld plays padded rows with a release that is not run otherwise: where a
// buffer has its size differs between releases.
func watchedOld(release string) func(s *stage) {
	return func(s *stage) {
		watchedPadded(s, s.on("p150a").watching(ttnnLibrary(s, release)), release)
	}
}

// runOpensAll: a holder is listed with the device that it holds memory of, though
// only its ledger knows the chip's id.
func runOpensAll(s *stage) {
	s.on("n300,p150a")
	a := s.allocates(filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
	chip := s.chips[slices.IndexFunc(s.chips, func(c cluster.Chip) bool { return c.Device == 1 })]
	a.do("make %d %d", uint64(1)<<32, chip.ID)
	a.do("take %d", 64*mib/8)
	snap := s.snapshot()
	s.device(snap, 1, ttnn.Held{"dram": 64*mib - 1}, model.DRAM)
	s.device(snap, 0, nil, model.DRAM)
	listed, device := map[string]string{}, ""
	for line := range strings.Lines(s.ttmon("mem", "--once").out) {
		if m := memDevice.FindStringSubmatch(line); m != nil {
			device = m[1]
		}
		if m := memHolder.FindStringSubmatch(line); m != nil && !strings.Contains(line, "run --quiet") { // which has them open, too
			listed[device] = m[2]
		}
	}
	s.fact("mem --once lists it with device 1", "64 MiB", listed["1"])
	s.fact("and not with device 0", "", listed["0"])
}

// forkedUnderRun: what a child takes from its copy of the allocator is counted,
// and what its parent holds is not counted twice.
func forkedUnderRun(s *stage) {
	s.on("p150a")
	a := s.allocates(filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
	held := a.takes(16 * mib)
	a.do("writers 1 %d", 8*mib/8)
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": held["dram"] + 8*mib - 1}, model.DRAM)
}

// watchedBuffers: the CB column has what tt-metal lays out, and not the little
// that it still reports.
func watchedBuffers(s *stage) {
	d := s.on("p150a").watching(ttnnLibrary(s, ttnn.Newest))
	j := s.ttnn(ttnn.Newest)
	s.do(j, open, alloc("a", "l1", 2*mib))
	snap := s.holdsL1(d)
	s.figure("CB before a program", 0, snap.Devices[0].Memory.Pools[model.CB].Used, s.beside(snap, 0))
	r := s.do(j, ttnn.Step{"do": "capture", "mode": "NORMAL"},
		ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}}, ttnn.Step{"do": "end_capture"})
	s.until("the program is known", func() bool {
		snap = s.daemonSnapshot(d)
		return snap.Devices[0].Memory.Pools[model.CB].Used.Positive()
	})
	m := &snap.Devices[0].Memory
	s.fact("what CB counts", string(model.CBLargest), string(m.CB))
	s.figure("CB of each core", r.CBCore, m.Pools[model.CB].Used, s.beside(snap, 0))
}

// holdsL1 waits until ttmond knows what is occupied of L1.
func (s *stage) holdsL1(d *daemon) (snap *model.Snapshot) {
	s.Helper()
	s.until("L1 is known", func() bool {
		snap = s.daemonSnapshot(d)
		return snap.Devices[0].Memory.Pools[model.L1].Occupied.Positive()
	})
	return snap
}

// watchedShards: what ttmon says of interleaved and sharded tensors is what the
// program finds when it tries.
func watchedShards(s *stage) {
	d := s.on("p150a").watching(ttnnLibrary(s, ttnn.Newest))
	j := s.ttnn(ttnn.Newest)
	s.do(j, ttnn.Step{"do": "open", "l1_small": 32768}, alloc("a", "l1", 2*mib), alloc("b", "l1_small", 8*2048))
	s.exactly(d, j.Held, model.L1, model.L1Small)
	really := s.do(j, ttnn.Step{"do": "try", "pool": "l1_small", "pages": 1, "page": 64}).Fits
	s.fact("an interleaved page fits into l1_small", fmt.Sprint(really), fmt.Sprint(s.fits(d, j, "l1_small", 1, 64).Fit.Fits))
	const cores = 8
	for _, pool := range []string{"l1", "l1_small"} {
		for _, page := range []uint64{2048, 200} {
			most := s.fits(d, j, pool, cores, page, "--shard", fmt.Sprintf("1x%d", page/4)).Fit.Largest / ((page + 15) / 16 * 16)
			for _, rows := range []uint64{most, most + 1} {
				said := s.fits(d, j, pool, cores*rows, page, "--shard", fmt.Sprintf("%dx%d", rows, page/4))
				really := s.do(j, ttnn.Step{"do": "try_sharded", "pool": pool, "cores": cores, "rows": rows, "page": page}).Fits
				s.fact(fmt.Sprintf("%d rows of %d bytes on each of %d cores fit into %s", rows, page, cores, pool), fmt.Sprint(really), fmt.Sprint(said.Fit.Fits))
			}
		}
	}
}

// watchedRows: the chips of a mesh are learned from what tt-metal records, which
// is what a buffer asked for, without the padding of its pages.
func watchedRows(s *stage) {
	d := s.on("n300").watching(ttnnLibrary(s, ttnn.Newest))
	j := s.ttnn(ttnn.Newest)
	s.do(j, ttnn.Step{"do": "open", "mesh": []int{1, 2}})
	for i := range 5 {
		s.do(j, ttnn.Step{"do": "rows", "name": fmt.Sprint(i), "pool": "dram", "rows": 1000, "page": 200})
	}
	s.holds(d, j.PID, model.FromUprobe)
	snap := s.exactly(d, ttnn.Held{"dram": 2 * 5 * 1000 * 200}, model.DRAM)
	for i := range snap.Devices[0].Chips {
		s.figure(fmt.Sprintf("occupied on chip %d", i), 5*1008*224, snap.Devices[0].Chips[i].Memory.Pools[model.DRAM].Occupied, s.beside(snap, 0))
	}
}
