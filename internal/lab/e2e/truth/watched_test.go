package truth

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/lib/libtest"
)

// watched begins the names of these scenarios.
const watched = "watched, "

// watchedScenarios are those of the audit that shared memory cannot tell, with
// a ttmond that watches allocators through the kernel: every figure is exact.
func watchedScenarios() (list []scenario) {
	for _, c := range []struct {
		name string
		fast bool
		play func(s *stage, d *daemon, release string)
	}{
		{watched + "workers allocate and free", true, watchedThreads},
		{watched + "graph capture without dispatch", false, watchedCapture},
		{watched + "graph capture begun before open", false, watchedCaptureBefore},
		{watched + "statistics off by environment", false, watchedDisabled},
		{watched + "all pools", false, watchedPools},
		{watched + "the mesh of an n300", false, watchedMesh},
		{watched + "rows that are padded", false, watchedPadded},
	} {
		for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
			list = append(list, scenario{
				name: fmt.Sprintf("ttnn %s: %s", release, c.name), how: alone | when(c.fast && release == ttnn.Newest, fast),
				play: func(s *stage) {
					boards := "p150a"
					if strings.Contains(c.name, "n300") {
						boards = "n300"
					}
					c.play(s, s.on(boards).watching(ttnnLibrary(s, release)), release)
				},
			})
		}
	}
	return append(list,
		scenario{name: watched + "71 forked writers", how: fast | alone, play: watchedWriters},
		scenario{name: watched + "another user's program", how: fast | alone, play: watchedUser},
		scenario{name: watched + "a dead one's pid", how: fast | alone, play: watchedReusedPID},
	)
}

// ttnnLibrary is the library of a release.
func ttnnLibrary(s *stage, release string) string {
	s.Helper()
	python := ttnn.Interpreter(s, release)
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(python)), "lib/python*/site-packages/ttnn/build/lib/libtt_metal.so"))
	if len(found) != 1 {
		s.Fatalf("libraries of ttnn %s: %v", release, found)
	}
	return found[0]
}

// watching starts a ttmond, and returns when it watches libraries: it answers before
// their probes are set, and what is allocated by then it does not see. The scenario
// is skipped where the machine does not allow it.
func (s *stage) watching(libraries ...string) *daemon {
	s.Helper()
	return s.watchingWith("", libraries...)
}

// watchingWith is watching with more lines of configuration.
func (s *stage) watchingWith(more string, libraries ...string) *daemon {
	s.Helper()
	dir := s.TempDir()
	config := filepath.Join(dir, "ttmond.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[uprobe]\nlibraries = [%s]\n%s", quoted(libraries), more), 0o644); err != nil {
		s.Fatal(err)
	}
	d := s.daemonWith("--config", config)
	var health struct{ Uprobe apitype.Watch }
	s.until("ttmond watches the libraries, or says why it does not", func() bool {
		health.Uprobe = apitype.Watch{}
		err := json.Unmarshal([]byte(s.run(filepath.Join(bin, "ttmon"), "daemon", "status", "--json", "--daemon", d.api).out), &health)
		return err == nil && health.Uprobe.State != "" && health.Uprobe.State != apitype.WatchStarting
	})
	if health.Uprobe.State != apitype.WatchOn {
		s.Skipf("the kernel does not let us watch: %s", health.Uprobe.Reason)
	}
	for _, path := range libraries {
		if !slices.ContainsFunc(health.Uprobe.Libraries, func(l apitype.WatchLibrary) bool { return l.Path == path }) {
			s.Fatalf("ttmond is ready, and does not watch %s: %+v", path, health.Uprobe)
		}
	}
	return d
}

// quoted is a list as TOML writes it.
func quoted(list []string) string {
	var all []string
	for _, text := range list {
		all = append(all, fmt.Sprintf("%q", text))
	}
	return strings.Join(all, ", ")
}

// exactly waits until ttmond shows the truth of device 0, and adds the rows:
// what it shows in the end, and that it is exact.
func (s *stage) exactly(d *daemon, truth ttnn.Held, pools ...model.Pool) *model.Snapshot {
	s.Helper()
	var snap *model.Snapshot
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		snap = s.daemonSnapshot(d)
		if s.isExactly(snap, truth, pools) || time.Now().After(limit) {
			break
		}
	}
	for _, p := range pools {
		used := snap.Devices[0].Memory.Pools[p].Used
		s.figure(fmt.Sprintf("device 0 %s", p), truth[p.String()], used, s.beside(snap, 0))
		_, bound, known := used.Best()
		s.fact("that figure is", "exact", map[bool]string{true: bound.String(), false: "missing"}[known])
	}
	return snap
}

func (s *stage) isExactly(snap *model.Snapshot, truth ttnn.Held, pools []model.Pool) bool {
	for _, p := range pools {
		if !snap.Devices[0].Memory.Pools[p].Used.Exactly(truth[p.String()]) {
			return false
		}
	}
	return true
}

func watchedThreads(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, open, alloc("keep", "dram", 2*mib), elsewhere("b", 32*mib))
	s.allocAndFree(j)
	s.exactly(d, j.Held, model.DRAM)
	s.edge(d, j, "dram")
	s.edge(d, j, "l1")
	s.do(j, ttnn.Step{"do": "free", "name": "b"}, ttnn.Step{"do": "free", "name": "keep", "thread": true})
	s.exactly(d, j.Held, model.DRAM)
}

// ownBlocks adds rows for what ttmon mem -p says that the buffers of a program
// asked for.
func (s *stage) ownBlocks(d *daemon, j *ttnn.Job) {
	s.Helper()
	r := s.run(filepath.Join(bin, "ttmon"), "mem", "-p", fmt.Sprint(j.PID), "--daemon", d.api, "--json")
	var doc struct {
		Processes []struct {
			Allocators []struct {
				Pools []struct {
					Pool  string
					Used  *uint64 `json:"used_bytes"`
					Bound string  `json:"used_bound"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc.Processes) != 1 {
		s.Fatalf("ttmon mem -p: %v\n%s%s", err, r.out, r.err)
	}
	var all model.Sum
	for _, a := range doc.Processes[0].Allocators {
		for _, p := range a.Pools {
			switch bound := map[string]model.Bound{"at_least": model.AtLeast, "unsure": model.Unsure}[p.Bound]; {
			case p.Pool != "dram":
			case p.Used == nil:
				all.Miss(model.Absent)
			default:
				all.Add(model.BoundBytes(*p.Used, bound))
			}
		}
	}
	s.figure("mem -p dram", j.Held["dram"], all.Bytes(), []model.Doubt{{Kind: model.RequestUnknown}})
}

// edge asks ttmon for the largest tensor that fits and for one of a page more,
// and lets the program try both.
func (s *stage) edge(d *daemon, j *ttnn.Job, pool string) {
	s.Helper()
	const page = 2048 // bytes of a row
	most := s.fits(d, j, pool, 1, page)
	most.pages = most.Fit.Largest / page * most.banks
	for _, pages := range []uint64{most.pages, most.pages + 1} {
		said := s.fits(d, j, pool, pages, page)
		really := s.do(j, ttnn.Step{"do": "try", "pool": pool, "pages": pages, "page": page}).Fits
		s.fact(fmt.Sprintf("%d pages more fit into %s", pages, pool), fmt.Sprint(really), fmt.Sprint(said.Fit.Fits))
		s.fact("at the edge", fmt.Sprint(pages == most.pages), fmt.Sprint(really))
	}
}

// fitting is an answer of ttmon mem --shape.
type fitting struct {
	Fit *struct {
		Fits    bool   `json:"fits"`
		Largest uint64 `json:"bank_largest_free_bytes"`
	}
	banks, pages uint64
}

// fits asks whether a tensor of so many rows would fit.
func (s *stage) fits(d *daemon, j *ttnn.Job, pool string, rows, page uint64, more ...string) fitting {
	s.Helper()
	r := s.run(filepath.Join(bin, "ttmon"), append([]string{
		"mem", "-p", fmt.Sprint(j.PID), "--daemon", d.api, "--json", "--memory", pool,
		"--shape", fmt.Sprintf("1,1,%d,%d", rows, page/4), "--dtype", "uint32", "--layout", "row_major",
	}, more...)...)
	var doc struct {
		Fits      []fitting
		Processes []struct {
			Allocators []struct {
				Pools []struct {
					Pool   string
					Banks  uint64
					Blocks []struct{}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc.Fits) != 1 || doc.Fits[0].Fit == nil {
		s.Fatalf("ttmon mem --shape: %v\n%s%s", err, r.out, r.err)
	}
	for _, a := range doc.Processes[0].Allocators {
		for _, p := range a.Pools {
			if p.Pool == pool {
				doc.Fits[0].banks = p.Banks
			}
		}
	}
	return doc.Fits[0]
}

func watchedCapture(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, open, alloc("keep", "dram", 2*mib), ttnn.Step{"do": "capture", "mode": "NO_DISPATCH"}, alloc("a", "dram", 64*mib))
	s.exactly(d, j.Held, model.DRAM)
	s.do(j, ttnn.Step{"do": "end_capture"}, alloc("b", "dram", 2*mib))
	s.exactly(d, j.Held, model.DRAM)
}

func watchedCaptureBefore(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, ttnn.Step{"do": "capture", "mode": "NORMAL"}, open, ttnn.Step{"do": "end_capture"}, alloc("a", "dram", 64*mib))
	s.exactly(d, j.Held, model.DRAM)
}

// watchedDisabled: no source names the chip, and there is only one.
func watchedDisabled(s *stage, d *daemon, release string) {
	j := s.ttnn(release, "TT_METAL_SHM_TRACKING_DISABLED=1")
	s.do(j, open, alloc("a", "dram", 128*mib), elsewhere("b", 4*mib))
	s.exactly(d, j.Held, model.DRAM)
	s.do(j, ttnn.Step{"do": "free", "name": "a"}, ttnn.Step{"do": "free", "name": "b"})
	snap := s.exactly(d, j.Held, model.DRAM)
	s.process(snap, j.PID, 0, j.Held, model.DRAM)
}

func watchedPools(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, ttnn.Step{"do": "open", "l1_small": 32768, "trace": mib},
		alloc("a", "dram", 4*mib), alloc("b", "l1", 2*mib), alloc("c", "l1_small", 8*2048), alloc("d", "trace", 64<<10))
	s.exactly(d, j.Held, tracked...)
}

func watchedMesh(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, ttnn.Step{"do": "open", "mesh": []int{1, 2}}, alloc("a", "dram", 4*mib))
	s.exactly(d, ttnn.Held{"dram": 8 * mib}, model.DRAM) // on each of its chips
}

// watchedPadded: what is used is what buffers asked for. The allocator takes more:
// it pads each page, and a shard is as large as the largest.
func watchedPadded(s *stage, d *daemon, release string) {
	j := s.ttnn(release)
	s.do(j, open, alloc("a", "dram", 2*mib), alloc("b", "l1", mib))
	for i, page := range []uint64{4, 20, 200, 2044} {
		for _, pool := range []string{"dram", "l1"} {
			s.do(j, ttnn.Step{"do": "rows", "name": fmt.Sprint(pool, i), "pool": pool, "rows": 999, "page": page})
		}
	}
	s.exactly(d, j.Held, model.DRAM, model.L1)
	s.ownBlocks(d, j)
	s.do(j, ttnn.Step{"do": "free", "name": "dram1"}, ttnn.Step{"do": "free", "name": "l12"})
	s.exactly(d, j.Held, model.DRAM, model.L1)
}

// allocator is a program with a library that looks like tt-metal's.
type allocator struct {
	*libtest.Driver
	s *stage
}

// fakeMetal is where they are, for all scenarios.
var fakeMetal = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(bin, "fake")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	_, _, err = programs.Allocating(dir)
	return dir, err
})

// fake is the directory of the program and its library.
func (s *stage) fake() string {
	s.Helper()
	dir, err := fakeMetal()
	if err != nil {
		s.Fatal(err)
	}
	return dir
}

// allocates starts the program behind a command, with all devices open.
func (s *stage) allocates(before ...string) *allocator {
	s.Helper()
	dir := s.fake()
	line := append([]string{"open", "--"}, before...)
	cmd := s.host.Command(context.Background(), filepath.Join(bin, "ttmon-sim"), append(line, filepath.Join(dir, "program"), filepath.Join(dir, "libtt_metal.so"))...)
	d, err := libtest.Start(cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(d.Kill)
	a := &allocator{d, s}
	if _, err := d.Answer(); err != nil {
		s.Fatal(err)
	}
	return a
}

func (a *allocator) do(format string, args ...any) {
	a.s.Helper()
	if _, err := a.Do(format, args...); err != nil {
		a.s.Fatal(err)
	}
}

// takes makes an allocator for the first chip and takes so many bytes of DRAM,
// in eight banks; the program asks for one byte less.
func (a *allocator) takes(bytes uint64) ttnn.Held {
	a.s.Helper()
	a.do("make %d %d", uint64(1)<<32, a.s.chips[0].ID)
	a.do("take %d", bytes/8)
	return ttnn.Held{"dram": bytes - 1}
}

func watchedWriters(s *stage) {
	d := s.on("p150a").watching(filepath.Join(s.fake(), "libtt_metal.so"))
	a := s.allocates()
	held := a.takes(mib)
	a.do("writers 70 %d", mib/8)
	s.exactly(d, ttnn.Held{"dram": 71 * held["dram"]}, model.DRAM)
}

func watchedUser(s *stage) {
	hermetic.NeedOtherUsers(s)
	d := s.on("p150a").watching(filepath.Join(s.fake(), "libtt_metal.so"))
	a := s.allocates("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
	s.exactly(d, a.takes(64*mib), model.DRAM)
}

func watchedReusedPID(s *stage) {
	d := s.on("p150a").watching(filepath.Join(s.fake(), "libtt_metal.so"))
	dead := s.allocates()
	s.exactly(d, dead.takes(1024*mib), model.DRAM)
	pid := dead.Cmd.Process.Pid
	dead.Kill()
	for range 400 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, pid-1), 0); err != nil {
			s.Skipf("needs to choose a pid: %v", err)
		}
		successor := s.allocates()
		if successor.Cmd.Process.Pid == pid {
			s.exactly(d, successor.takes(7*mib), model.DRAM)
			return
		}
		successor.Kill()
	}
	s.Fatalf("pid %d was not to be had again", pid)
}
