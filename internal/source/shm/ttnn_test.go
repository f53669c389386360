package shm

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// realScene is a scene with real ttnn programs in it.
type realScene struct {
	*scene
	descriptor string
	release    string
	dir        string
}

func newRealScene(t *testing.T, descriptor, release string) *realScene {
	path, err := ttnn.Descriptor(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	return &realScene{scene: newScene(t), descriptor: path, release: release, dir: t.TempDir()}
}

func (th *realScene) play(env ...string) *ttnn.Job {
	th.Helper()
	j := ttnn.Play(th, ttnn.Options{Release: th.release, Descriptor: th.descriptor, Dir: th.dir, Env: env})
	return j
}

func (th *realScene) step(j *ttnn.Job, s ttnn.Step) ttnn.Reply {
	th.Helper()
	r, err := j.Do(s)
	if err != nil {
		th.Fatal(err)
	}
	return r
}

// shows checks that the region of a chip has exactly these jobs, each with
// what it holds by its own account. Circular buffers are not the program's
// own: only that they are known is checked.
func (th *realScene) shows(id uint64, jobs ...*ttnn.Job) *Region {
	th.Helper()
	th.read()
	reg := th.region(id)
	sum := map[string]uint64{}
	for _, j := range jobs {
		found := false
		for _, u := range reg.Uses {
			if u.PID != j.PID {
				continue
			}
			found = true
			for pool, want := range j.Held {
				sum[pool] += want
				if got := show(u.Bytes[poolNamed(pool)]); got != fmt.Sprint(want) {
					th.Errorf("chip %d process %d %s: %s, want %d", id, j.PID, pool, got, want)
				}
			}
			if !u.Bytes[model.CB].Known() {
				th.Errorf("chip %d process %d: circular buffers %s", id, j.PID, u.Bytes[model.CB].Status())
			}
		}
		if !found {
			th.Errorf("chip %d: process %d is not in %+v", id, j.PID, reg.Uses)
		}
	}
	for pool, want := range sum {
		if got := show(usedOf(reg)[poolNamed(pool)]); got != fmt.Sprint(want) {
			th.Errorf("chip %d used %s: %s, want %d", id, pool, got, want)
		}
	}
	if len(reg.Uses) != len(jobs) {
		th.Errorf("chip %d: %d uses, want %d", id, len(reg.Uses), len(jobs))
	}
	th.doubts(reg)
	return reg
}

func (th *realScene) describes(j *ttnn.Job) *Process {
	th.Helper()
	for _, p := range th.last.Processes {
		if p.PID == j.PID {
			return p
		}
	}
	th.Fatalf("process %d is not in the sweep", j.PID)
	return nil
}

const p150 = 4476187513037 // the chip id in blackhole_P150.yaml

func TestRealProgram(t *testing.T) {
	for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
		t.Run(release, func(t *testing.T) {
			th := newRealScene(t, "blackhole_P150", release)
			j := th.play()
			th.step(j, ttnn.Step{"do": "open", "device": 0, "l1_small": 32768, "trace": 1 << 20})
			reg := th.shows(p150, j)
			if reg.Version != 3 || reg.Path != filepath.Join("/dev/shm", RegionName(p150)) {
				t.Errorf("region %+v", reg)
			}
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
			} {
				th.step(j, s)
				th.shows(p150, j)
				if t.Failed() {
					t.Fatalf("after %v", s)
				}
			}
			p := th.describes(j)
			if p.Release.V != release || p.Name != "python" {
				t.Errorf("process %+v", p)
			}
			th.step(j, ttnn.Step{"do": "close"})
			th.shows(p150)
		})
	}
}

func TestRealProgramKilled(t *testing.T) {
	for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
		t.Run(release, func(t *testing.T) {
			th := newRealScene(t, "blackhole_P150", release)
			a, b := th.play(), th.play()
			for i, j := range []*ttnn.Job{a, b} {
				th.step(j, ttnn.Step{"do": "open"})
				th.step(j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": (1 + i) << 20})
			}
			th.ghosts(th.shows(p150, a, b))
			if err := a.Kill(); err != nil {
				t.Fatal(err)
			}
			reg := th.shows(p150, b)
			th.ghosts(reg, "python:1048576")
			if reg.StaleSlots[0].PID != a.PID {
				t.Errorf("ghost %+v, want process %d", reg.StaleSlots[0], a.PID)
			}
			th.step(b, ttnn.Step{"do": "close"})
			th.ghosts(th.shows(p150), "python:1048576")
			left := th.last.Leftovers()
			if len(left) != 1 || left[0].Blocked != nil {
				t.Fatalf("leftovers %+v", left)
			}
			if err := th.r.Remove(left[0].Region); err != nil {
				t.Fatal(err)
			}
			// The program that is still there opens the chip again, and is seen.
			th.step(b, ttnn.Step{"do": "open"})
			th.step(b, ttnn.Step{"do": "alloc", "name": "n", "pool": "l1", "bytes": 4096})
			th.ghosts(th.shows(p150, b))
		})
	}
}

// What the writer does not see of a second thread cannot be known outside. The
// figure is what it says, and the process carries the note.
func TestRealSecondThread(t *testing.T) {
	for release, counted := range map[string]string{ttnn.Newest: "1048576", ttnn.AllThreads: "34603008"} {
		t.Run(release, func(t *testing.T) {
			th := newRealScene(t, "blackhole_P150", release)
			j := th.play()
			th.step(j, ttnn.Step{"do": "open"})
			th.step(j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 1 << 20})
			th.shows(p150, j)
			th.step(j, ttnn.Step{"do": "alloc", "name": "b", "pool": "dram", "bytes": 32 << 20, "thread": true})
			if release == ttnn.Newest { // the other one has no view of its allocator
				if got := th.step(j, ttnn.Step{"do": "view"}).View["dram"]; got != 33<<20 {
					t.Errorf("the allocator gave out %d bytes, want 33 MiB", got)
				}
			}
			th.read()
			reg := th.region(p150)
			if len(reg.Uses) != 1 || show(reg.Uses[0].Bytes[model.DRAM]) != counted {
				t.Errorf("uses %+v, want %s bytes of DRAM: has the writer changed?", reg.Uses, counted)
			}
			doubts := reg.Uses[0].Doubts
			if noted := slices.ContainsFunc(doubts, model.Doubt{Kind: model.OtherThreads, Release: release}.Equal); noted != (release == ttnn.Newest) {
				t.Errorf("doubts %+v", doubts)
			}
		})
	}
}

// A mesh holds the same on each of its chips, remote ones included.
func TestRealMesh(t *testing.T) {
	tests := []struct {
		descriptor string
		mesh       []int
		ids        []uint64 // some of them
	}{
		{"wormhole_N300_pci_bdf", []int{1, 2}, []uint64{9956278468, 14251245764}},
		{"6u_cluster_desc", []int{8, 4}, []uint64{87029889494954051}},
	}
	for _, tt := range tests {
		for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
			t.Run(tt.descriptor+"/"+release, func(t *testing.T) {
				th := newRealScene(t, tt.descriptor, release)
				j := th.play()
				reply := th.step(j, ttnn.Step{"do": "open", "mesh": tt.mesh})
				th.step(j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 64 << 20})
				th.step(j, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 1 << 20})
				th.read()
				chips := tt.mesh[0] * tt.mesh[1]
				if len(th.last.Regions) != chips || reply.Chips != chips {
					t.Fatalf("%d regions, %d chips, want %d", len(th.last.Regions), reply.Chips, chips)
				}
				for _, reg := range th.last.Regions {
					th.shows(reg.ID, j)
				}
				for _, id := range tt.ids {
					th.shows(id, j)
				}
				if err := j.Kill(); err != nil {
					t.Fatal(err)
				}
				th.read()
				for _, reg := range th.last.Regions {
					th.ghosts(th.shows(reg.ID), fmt.Sprintf("python:%d", 64<<20))
				}
			})
		}
	}
}

func TestRealTrackingDisabled(t *testing.T) {
	th := newRealScene(t, "blackhole_P150", ttnn.Newest)
	j := th.play(disableVariable + "=1")
	th.step(j, ttnn.Step{"do": "open"})
	sweep := th.r.Read([]User{{PID: j.PID}})
	if len(sweep.Regions) != 0 || len(sweep.Processes) != 1 {
		t.Fatalf("sweep %+v", sweep)
	}
	if p := sweep.Processes[0]; p.Accounts || p.Silent.Kind != model.TrackingDisabled || p.Release.V != ttnn.Newest {
		t.Errorf("process %+v", p)
	}
}
