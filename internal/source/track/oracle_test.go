package track

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// preloaded is the environment of a program with the library in it.
func preloaded(t *testing.T) []string {
	t.Helper()
	if built == "" {
		t.Skip("no C compiler")
	}
	return []string{"LD_PRELOAD=" + filepath.Join(built, "libttmon.so"), "TTMON_STACKS=python"}
}

func step(t *testing.T, j *ttnn.Job, s ttnn.Step) ttnn.Reply {
	t.Helper()
	r, err := j.Do(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEqualsTheAllocator is the oracle: whatever an unmodified ttnn does, the
// blocks in the ledger are those of its allocator's own table.
func TestEqualsTheAllocator(t *testing.T) {
	hermetic.Long(t)
	env := preloaded(t)
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		for _, on := range []struct {
			name, descriptor string
			open             ttnn.Step
			chips            int
		}{
			{"p150", "blackhole_P150", ttnn.Step{"device": 0}, 1},
			{"n300", "wormhole_N300_pci_bdf", ttnn.Step{"mesh": []int{1, 2}}, 2},
			{"galaxy", "6u_cluster_desc", ttnn.Step{"mesh": []int{8, 4}}, 32},
		} {
			t.Run(release+"/"+on.name, func(t *testing.T) {
				path, err := ttnn.Descriptor(on.descriptor)
				if err != nil {
					t.Fatal(err)
				}
				ttnn.NeedRelease(t, release)
				j, err := ttnn.Start(ttnn.Options{Release: release, Descriptor: path, Dir: t.TempDir(), Env: env})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = j.Kill() })
				r := NewReader(Options{})
				defer r.Close()
				on.open["do"], on.open["l1_small"], on.open["trace"] = "open", 32768, 1<<22
				step(t, j, on.open)
				for seed := range 4 {
					step(t, j, ttnn.Step{"do": "churn", "seed": seed, "steps": 400, "threads": 1 + seed%3})
					compare(t, r, j, on.chips)
				}
				step(t, j, ttnn.Step{"do": "drop"})
				compare(t, r, j, on.chips)
				step(t, j, ttnn.Step{"do": "close"})
				if p := find(t, r, j.PID); p.State.Blocks() != 0 || len(p.State.Allocators) != 0 {
					t.Errorf("after close: %d blocks, %d allocators", p.State.Blocks(), len(p.State.Allocators))
				}
			})
		}
	}
}

func find(t *testing.T, r *Reader, pid int) Process {
	t.Helper()
	for _, p := range r.Read(nil).Processes {
		if p.PID == pid {
			return p
		}
	}
	t.Fatalf("process %d keeps no ledger", pid)
	return Process{}
}

// compare holds the ledger against the allocator's own table.
func compare(t *testing.T, r *Reader, j *ttnn.Job, chips int) {
	t.Helper()
	want := step(t, j, ttnn.Step{"do": "table"}).Table
	p := find(t, r, j.PID)
	if !p.State.Exact() || p.Ledger.Unknown > 0 || p.Ledger.Unmatched > 0 {
		t.Errorf("not exact: lost %d, unknown %d, unmatched %d", p.Ledger.Lost, p.Ledger.Unknown, p.Ledger.Unmatched)
	}
	a := ttnn.InUse(p.State)
	ttnn.Compare(t, want, a, chips)
	for _, b := range p.Ledger.Blocks {
		if b.Asked == 0 || len(p.Ledger.Stack(p.Ledger.Sites[b.Site].Node)) == 0 {
			t.Errorf("block at %d: asked %d, stack %v", b.Address, b.Asked, p.Ledger.Stack(p.Ledger.Sites[b.Site].Node))
			break
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestPeaksLeaksAndLines: the peaks are those that the program saw itself by
// asking its allocator at every step, what is left behind are the tensors that
// it kept, and each is named by the line that made it.
func TestPeaksLeaksAndLines(t *testing.T) {
	env := preloaded(t)
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		for _, keep := range []bool{false, true} {
			name := release + "/freed"
			if keep {
				name = release + "/kept"
			}
			t.Run(name, func(t *testing.T) {
				python := ttnn.Interpreter(t, release)
				dir := t.TempDir()
				args := []string{filepath.Join(root, "testdata/ttnn/sites.py"), "7", "150"}
				if keep {
					args = append(args, "keep")
				}
				run := RunName(os.Getpid(), ownStart(t), 1)
				cmd := exec.Command(python, args...)
				cmd.Dir = dir
				cmd.Env = append(append(os.Environ(), env...), "TTMON_RUN="+run, "TT_METAL_MOCK_CLUSTER_DESC_PATH="+descriptor,
					"TT_METAL_LOGS_PATH="+dir, "TT_METAL_CACHE="+filepath.Join(dir, "cache"), "HOME="+dir, "TT_LOGGER_LEVEL=error")
				if release == ttnn.AllThreads {
					cmd.Env = append(cmd.Env, "TT_METAL_SLOW_DISPATCH_MODE=1")
				}
				var complaints bytes.Buffer
				cmd.Stderr = &complaints
				started := time.Now()
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, complaints.String())
				}
				var want struct {
					Peak  map[string]uint64
					Kept  map[string]uint64
					Lines map[string]int
				}
				if err := json.Unmarshal(out, &want); err != nil {
					t.Fatal(err)
				}
				r := NewReader(Options{Run: run, Remove: true})
				defer r.Close()
				ended := r.Read(nil).Ended
				if len(ended) != 1 || ended[0].Ledger.Flags&ledgerfile.Ended == 0 {
					t.Fatalf("ended: %+v", ended)
				}
				b := runreport.NewBuilder(started)
				b.Add(ended[0].Path, ended[0].Ledger, false)
				checkReport(t, b.Report(time.Now(), nil), ended[0].Ledger, want.Peak, want.Kept, want.Lines)
			})
		}
	}
}

func checkReport(t *testing.T, r *runreport.Report, l *ledgerfile.Ledger, peak, kept map[string]uint64, lines map[string]int) {
	t.Helper()
	if d := r.Run.Devices; len(d) != 1 || len(d[0].Chips) != 1 || d[0].Chips[0].ID != "4476187513037" {
		t.Fatalf("chips: %+v", d)
	}
	got := map[string]uint64{}
	var left uint64
	for name, p := range r.Run.Devices[0].Chips[0].Pools {
		banks := uint64(0)
		for _, x := range l.Lists {
			if pool, ok := blocks.PoolOf(x.Pool); ok && pool.String() == name && x.Total.Blocks > 0 {
				banks = uint64(x.Banks)
			}
		}
		if p.PeakBytes() != model.ExactBytes(peak[name]*banks) {
			t.Errorf("%s: peak %v, the program saw %d in %d banks", name, p.PeakBytes(), peak[name], banks)
		}
		left += p.Blocks.Left.Blocks
		for _, place := range p.Blocks.LeftBy {
			lineOf := func(f ledgerfile.Frame) int { return f.Line }
			inProgram := slices.Collect(func(yield func(int) bool) {
				for _, f := range place.Stack {
					if filepath.Base(f.File) == "sites.py" && !yield(lineOf(f)) {
						return
					}
				}
			})
			for what, line := range lines {
				if what != "innermost" && slices.Contains(inProgram, line) {
					got[what] += place.Blocks
				}
			}
		}
		var sum uint64
		for _, place := range p.Blocks.AtPeak {
			sum += place.Bytes
		}
		if sum != p.Peak {
			t.Errorf("%s: places held %d at the peak of %d", name, sum, p.Peak)
		}
	}
	var want uint64
	for what, n := range kept {
		want += n
		if got[what] != n {
			t.Errorf("%s: %d left behind on its line, %d kept", what, got[what], n)
		}
	}
	if left != want {
		t.Errorf("%d blocks left behind, %d tensors kept", left, want)
	}
}

// TestTensors: beside each block stands the tensor that it is for, as ttnn itself
// describes it, in all releases whose tensors are laid out in another way; that of
// a request that failed, too.
func TestTensors(t *testing.T) {
	env := preloaded(t)
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Middle, ttnn.Newest} {
		t.Run(release, func(t *testing.T) {
			ttnn.NeedRelease(t, release)
			j, err := ttnn.Start(ttnn.Options{Release: release, Descriptor: descriptor, Dir: t.TempDir(), Env: env})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Kill() })
			r := NewReader(Options{})
			defer r.Close()
			step(t, j, ttnn.Step{"do": "open", "device": 0, "l1_small": 32768, "trace": 1 << 22})
			step(t, j, ttnn.Step{"do": "churn", "seed": 3, "steps": 300, "threads": 2})
			if step(t, j, ttnn.Step{"do": "ask", "pool": "dram", "rows": 1 << 20, "columns": 1 << 16}).Fits {
				t.Fatal("128 GiB fit")
			}
			want := map[string]string{}
			for _, x := range step(t, j, ttnn.Step{"do": "tensors"}).Tensors {
				want[x.Pool+" "+strconv.FormatUint(x.Address, 10)] = x.Tensor
			}
			p := find(t, r, j.PID)
			known := 0
			for _, b := range p.Ledger.Blocks {
				site := p.Ledger.Sites[b.Site]
				pool, _ := blocks.PoolOf(p.Ledger.Lists[site.List].Pool)
				key := pool.String() + " " + strconv.FormatUint(b.Address, 10)
				if site.Tensor != want[key] {
					t.Errorf("%s: %q, ttnn says %q", key, site.Tensor, want[key])
				}
				if site.Tensor != "" {
					known++
				}
			}
			if known < 50 || known != len(want) {
				t.Errorf("%d tensors are known, ttnn has %d", known, len(want))
			}
			if f := p.Ledger.Failures; len(f) == 0 || f[len(f)-1].Tensor != "[1,1,1048576,65536] bfloat16 tile interleaved" {
				t.Errorf("failures: %+v", f)
			}
		})
	}
}

// TestGrew: what a program loses step by step is told from what it still uses when
// it closes its device.
func TestGrew(t *testing.T) {
	env := preloaded(t)
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		t.Run(release, func(t *testing.T) {
			python := ttnn.Interpreter(t, release)
			dir := t.TempDir()
			run := RunName(os.Getpid(), ownStart(t), 1)
			cmd := exec.Command(python, filepath.Join(root, "testdata/ttnn/leak.py"), "40")
			cmd.Dir = dir
			cmd.Env = append(append(os.Environ(), env...), "TTMON_RUN="+run, "TT_METAL_MOCK_CLUSTER_DESC_PATH="+descriptor,
				"TT_METAL_LOGS_PATH="+dir, "TT_METAL_CACHE="+filepath.Join(dir, "cache"), "HOME="+dir, "TT_LOGGER_LEVEL=error")
			if release == ttnn.AllThreads {
				cmd.Env = append(cmd.Env, "TT_METAL_SLOW_DISPATCH_MODE=1")
			}
			started := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r := NewReader(Options{Run: run, Remove: true})
			defer r.Close()
			ended := r.Read(nil).Ended
			if len(ended) != 1 {
				t.Fatalf("ended: %+v", ended)
			}
			b := runreport.NewBuilder(started)
			b.Add(ended[0].Path, ended[0].Ledger, false)
			grew, alive := map[string]uint64{}, map[string]uint64{}
			for _, p := range b.Report(time.Now(), nil).Run.Devices[0].Chips[0].Pools {
				for _, x := range runs.ByLine(p.Blocks.LeftBy) {
					f, _ := x.Where()
					if x.Grew {
						grew[f.Function] += x.Blocks
					} else {
						alive[f.Function] += x.Blocks
					}
				}
			}
			if grew["step"] != 20 || len(grew) != 1 || alive["load"] != 12 {
				t.Errorf("grew %v, alive %v", grew, alive)
			}
		})
	}
}
