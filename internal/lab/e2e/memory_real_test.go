package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/model"
)

// stage is a simulated host with real ttnn programs on it.
type stage struct {
	*testing.T
	host  *sim.Host
	jobs  map[*ttnn.Job][]uint64 // the chips that each has open
	chips []cluster.Chip         // by UMD's number
}

func newStage(t *testing.T, o sim.Options) *stage {
	s := &stage{T: t, host: start(t, o), jobs: map[*ttnn.Job][]uint64{}}
	s.chips = chipsIn(t, s.host)
	return s
}

// truth is what the programs hold by their own account.
func (st *stage) truth() books {
	b := books{}
	for j, chips := range st.jobs {
		for _, id := range chips {
			if b[id] == nil {
				b[id] = map[int]bytesBy{}
			}
			b[id][j.PID] = bytesBy(j.Held)
		}
	}
	return b
}

// step lets a program do something, and compares ttmon smi --json with what
// all programs hold then.
func (st *stage) step(j *ttnn.Job, s ttnn.Step) ttnn.Reply {
	st.Helper()
	r, err := j.Do(s)
	if err != nil {
		st.Fatal(err)
	}
	switch s["do"] {
	case "open":
		st.jobs[j] = nil
		for _, ch := range st.chips[:r.Chips] {
			st.jobs[j] = append(st.jobs[j], ch.ID)
		}
	case "close":
		// It still has the node open, and accounts nowhere: that it
		// holds nothing cannot be known.
		delete(st.jobs, j)
		s := snapshot(st.T, st.host)
		wantNoBytes(st.T, "DRAM of a program that has closed its chip", s.Devices[0].Memory.Pools[model.DRAM].Used, model.Absent)
		if !doubted(s.Devices[0].Memory.Doubts, model.NotAttached) {
			st.Errorf("after close: %+v", s.Devices[0].Memory.Doubts)
		}
		return r
	}
	st.compare(fmt.Sprint(s))
	return r
}

// compare takes a snapshot and holds it against the truth.
//
// On a busy machine a snapshot may not know yet which chip is which: it says so,
// and the next one does. A figure that is wrong fails at once.
func (st *stage) compare(after string) *model.Snapshot {
	st.Helper()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s := snapshot(st.T, st.host)
		placed := st.truth().placed(s, st.chips)
		if placed != nil && len(s.Unmatched) > 0 && time.Now().Before(limit) {
			continue
		}
		if err := errors.Join(placed, st.truth().check(s)); err != nil {
			st.Fatalf("after %s: %v", after, err)
		}
		return s
	}
}

// TestRealMemory runs the real ttnn on a simulated p150: whatever it does, the
// numbers of ttmon are the program's own.
func TestRealMemory(t *testing.T) {
	for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, sim.Options{Boards: "p150a"})
			a := play(t, st.host, release, true)
			st.step(a, ttnn.Step{"do": "open", "l1_small": 32768, "trace": 1 << 20})
			for _, s := range []ttnn.Step{
				{"do": "alloc", "name": "a", "pool": "dram", "bytes": 128 << 20},
				{"do": "alloc", "name": "b", "pool": "l1", "bytes": 2 << 20},
				{"do": "alloc", "name": "s", "pool": "l1_small", "bytes": 8 * 2048},
				{"do": "alloc", "name": "t", "pool": "trace", "bytes": 64 << 10},
				{"do": "add", "name": "c", "of": []string{"b", "b"}},
				{"do": "alloc", "name": "x", "pool": "dram", "bytes": 1 << 20, "columns": 512},
				{"do": "alloc", "name": "y", "pool": "dram", "bytes": 1 << 20, "columns": 1024},
				{"do": "matmul", "name": "z", "of": []string{"x", "y"}},
				{"do": "free", "name": "a"},
				{"do": "free", "name": "c"},
				{"do": "free", "name": "s"},
				{"do": "free", "name": "t"},
			} {
				st.step(a, s)
			}
			st.checkView(a, release)
			p := processOf(t, st.compare("all that"), a.PID)
			wantValue(t, "release", p.Release, release)
			if noted := doubted(p.Devices[0].Doubts, model.OtherThreads); noted != (release == ttnn.Newest) {
				t.Errorf("doubts of %s: %+v", release, p.Devices[0].Doubts)
			}
			st.killed(a, release)
		})
	}
}

// checkView compares with what the allocator itself gave out, where the
// release tells: at least what was asked for, in every pool.
func (st *stage) checkView(j *ttnn.Job, release string) {
	st.Helper()
	if release != ttnn.Newest {
		return // its view is unavailable from Python
	}
	r := st.step(j, ttnn.Step{"do": "view"})
	for pool, held := range r.Held {
		if r.View[pool] < held || held == 0 && pool != "dram" && r.View[pool] != 0 {
			st.Errorf("%s: the allocator gave out %d bytes, the program holds %d", pool, r.View[pool], held)
		}
	}
}

// killed continues with a second program on the chip: the first is killed, its
// bytes have no owner and are listed; the second closes, and the first's remain.
func (st *stage) killed(a *ttnn.Job, release string) {
	st.Helper()
	b := play(st.T, st.host, release, true)
	st.step(b, ttnn.Step{"do": "open"})
	st.step(b, ttnn.Step{"do": "alloc", "name": "b", "pool": "dram", "bytes": 6 << 20})
	wantGhosts(st.T, st.compare("two programs on one chip"))
	left := a.Held
	delete(st.jobs, a)
	if err := a.Kill(); err != nil {
		st.Fatal(err)
	}
	s := st.compare("SIGKILL of the first")
	st.wantGhost(s, a, left)
	st.step(b, ttnn.Step{"do": "close"})
	st.wantGhost(snapshot(st.T, st.host), a, left)
	if r := runIn(st.T, st.host, "smi"); !strings.Contains(r.out, "left by a dead process") {
		st.Errorf("the table does not mention what the dead left:\n%s", r.out)
	}
	// Without it the chip is as new, for a program that continues, too.
	if r := runIn(st.T, st.host, "stale", "--remove", "--yes"); r.code != 0 || !strings.Contains(r.out, "removed") {
		st.Errorf("ttmon mem --stale --remove: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	wantGhosts(st.T, snapshot(st.T, st.host))
	st.step(b, ttnn.Step{"do": "open"})
	st.step(b, ttnn.Step{"do": "alloc", "name": "n", "pool": "l1", "bytes": 4096})
	st.secondThread(b, release)
}

// wantGhost checks what a killed program left: all it held, and circular
// buffers, which have no requested size.
func (st *stage) wantGhost(s *model.Snapshot, j *ttnn.Job, left ttnn.Held) {
	st.Helper()
	if len(s.StaleSlots) != 1 || s.StaleSlots[0].PID != j.PID || s.StaleSlots[0].Name != "python" {
		st.Fatalf("ghosts %+v, want one of process %d", s.StaleSlots, j.PID)
	}
	g := &s.StaleSlots[0]
	sum, _, _ := g.Bytes[model.CB].Best()
	for pool, v := range left {
		wantBytes(st.T, "left in "+pool, g.Bytes[poolsOf[pool]], v)
		sum += v
	}
	wantBytes(st.T, "stale bytes of the device", s.Devices[0].Memory.Stale, sum)
	if g.Updated.IsZero() || g.Updated.After(s.Time) {
		st.Errorf("last written %v, in a snapshot of %v", g.Updated, s.Time)
	}
}

// secondThread allocates where releases since 0.72 do not look. What cannot
// be known is said.
func (st *stage) secondThread(j *ttnn.Job, release string) {
	st.Helper()
	before, _, _ := processOf(st.T, snapshot(st.T, st.host), j.PID).Devices[0].Memory[model.DRAM].Best()
	if _, err := j.Do(ttnn.Step{"do": "alloc", "name": "far", "pool": "dram", "bytes": 32 << 20, "thread": true}); err != nil {
		st.Fatal(err)
	}
	s := snapshot(st.T, st.host)
	p := processOf(st.T, s, j.PID)
	now, bound, _ := p.Devices[0].Memory[model.DRAM].Best()
	counted := now - before
	noted := doubted(p.Devices[0].Doubts, model.OtherThreads)
	if bound != model.Unsure {
		st.Errorf("the figure is %s", bound)
	}
	if release == ttnn.AllThreads && counted != 32<<20 {
		st.Errorf("%d bytes of a second thread were counted, want all 32 MiB", counted)
	}
	if release == ttnn.Newest && (counted != 0 || !noted) {
		st.Errorf("%d bytes of a second thread were counted; doubts %+v", counted, p.Devices[0].Doubts)
	}
	if report := runIn(st.T, st.host, "smi", "-q", "-d", "PIDS"); strings.Contains(report.out, "counts what one thread allocates") != noted {
		st.Errorf("noted: %v, and the report says:\n%s", noted, report.out)
	}
}

// TestRealMesh: a mesh holds the same on each of its chips. The chip behind
// another one is shown under its board.
func TestRealMesh(t *testing.T) {
	for _, c := range []struct {
		name    string
		boards  string
		release string
		mesh    []int
		dump    bool // UMD's descriptor can be found
		nodes   bool // the program has the devices open
	}{
		{"n300", "n300", ttnn.Newest, []int{1, 2}, false, true},
		{"n300 old", "n300", ttnn.AllThreads, []int{1, 2}, false, true},
		{"galaxy by descriptor", "galaxy-wormhole", ttnn.Newest, []int{8, 4}, true, true},
		{"galaxy by order", "galaxy-wormhole", ttnn.AllThreads, []int{8, 4}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, sim.Options{Boards: c.boards, UMDDump: c.dump})
			j := play(t, st.host, c.release, c.nodes)
			r := st.step(j, ttnn.Step{"do": "open", "mesh": c.mesh})
			if r.Chips != c.mesh[0]*c.mesh[1] {
				t.Fatalf("%d chips", r.Chips)
			}
			st.step(j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 64 << 20})
			st.step(j, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 1 << 20})
			st.step(j, ttnn.Step{"do": "add", "name": "c", "of": []string{"b", "b"}})
			st.step(j, ttnn.Step{"do": "free", "name": "a"})
			if p := processOf(t, st.compare("that"), j.PID); c.nodes {
				wantValue(t, "open descriptors", p.Devices[0].OpenFDs, 1)
			}
			delete(st.jobs, j)
			if err := j.Kill(); err != nil {
				t.Fatal(err)
			}
			if s := st.compare("SIGKILL"); len(s.StaleSlots) != r.Chips {
				t.Errorf("%d ghosts, want one on each of %d chips", len(s.StaleSlots), r.Chips)
			}
		})
	}
}
