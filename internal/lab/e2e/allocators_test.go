package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestAllocatorsFromOutside: what shared memory cannot tell of an unmodified
// program (tensors of other threads) is exact where its allocator is watched.
func TestAllocatorsFromOutside(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h, "--config", watchingFromTheStart(t))
	d.mustWatch()
	j := play(t, h, ttnn.Newest, true)
	for _, s := range []ttnn.Step{
		{"do": "open", "l1_small": 32768, "trace": 1 << 20},
		{"do": "alloc", "name": "a", "pool": "dram", "bytes": 64 << 20},
		{"do": "alloc", "name": "b", "pool": "dram", "bytes": 32 << 20, "thread": true},
		{"do": "alloc", "name": "c", "pool": "l1", "bytes": 2 << 20, "thread": true},
		{"do": "alloc", "name": "x", "pool": "dram", "bytes": 16 << 20},
		{"do": "free", "name": "x"},
	} {
		if _, err := j.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	// The library, and so the probes, are those of a program of another host, too.
	foreign := play(t, start(t, sim.Options{Boards: "p150a"}), ttnn.Newest, true)
	for _, s := range []ttnn.Step{{"do": "open"}, {"do": "alloc", "name": "a", "pool": "dram", "bytes": 64 << 20}} {
		if _, err := foreign.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Do(ttnn.Step{"do": "alloc", "name": "last", "pool": "dram", "bytes": 8 << 20}); err != nil {
		t.Fatal(err)
	}
	view, err := j.Do(ttnn.Step{"do": "view"})
	if err != nil {
		t.Fatal(err)
	}
	var problem error
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if problem = isExact(snapshot(t, h, "--daemon", d.api), j, view.View); problem == nil {
			break
		}
	}
	if problem != nil {
		t.Fatal(problem)
	}
	if s := snapshot(t, h, "--daemon", d.api); len(s.Processes) != 1 || len(s.Unmatched) > 0 {
		t.Errorf("with a program on another host (%d): %+v, chips of no device %+v", foreign.PID, s.Processes, s.Unmatched)
	}
	// The snapshot that names the chip may be a second behind the one above.
	var out result
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		out = runIn(t, h, "mem", "-p", fmt.Sprint(j.PID), "--fits", "1G", "--daemon", d.api)
		if strings.Contains(out.out, "DRAM of device 0") {
			break
		}
	}
	for _, want := range []string{"DRAM of device 0, 8 banks", "L1 of device 0", "exact", "would 1.0 GiB fit?  yes: 128 MiB in each bank"} {
		if !strings.Contains(out.out, want) {
			t.Errorf("ttmon mem -p does not say %q:\n%s%s", want, out.out, out.err)
		}
	}
	if out := runIn(t, h, "mem", "--fits", "60G", "-i", "0", "--daemon", d.api); !strings.Contains(out.out, "fit?  no: ") {
		t.Errorf("60 GiB on a p150:\n%s%s", out.out, out.err)
	}
}

// watchingFromTheStart is a configuration that names the library: on a busy
// machine a program could be faster than ttmond.
func watchingFromTheStart(t *testing.T) string { return watchingRelease(t, ttnn.Newest) }

// watchingRelease is the same for another release.
func watchingRelease(t *testing.T, release string) string {
	t.Helper()
	python := ttnn.Interpreter(t, release)
	glob := filepath.Join(filepath.Dir(python), "../lib/python3.*/site-packages/ttnn/build/lib/libtt_metal.so")
	path := filepath.Join(t.TempDir(), "ttmond.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[uprobe]\nlibraries = [%q]\n", glob), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// isExact compares a snapshot with what a program holds by its own account,
// and what its allocator has given out for it.
func isExact(s *model.Snapshot, j *ttnn.Job, view ttnn.Held) error {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID != j.PID || len(p.Devices) != 1 {
			continue
		}
		if u := &p.Devices[0]; u.Source != model.FromUprobe {
			return fmt.Errorf("the source is %q: %+v", u.Source, u.Doubts)
		}
		for _, pool := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
			name, chip := pool.String(), &s.Devices[0].Chips[0].Memory.Pools[pool]
			if b := p.Devices[0].Memory[pool]; !b.Exactly(j.Held[name]) {
				return fmt.Errorf("%s of the process: %+v, not %d", name, b, j.Held[name])
			}
			if !chip.Occupied.Exactly(view[name]) || !chip.Free.Known() || !chip.LargestFree.Known() {
				return fmt.Errorf("%s of the chip: %+v, its allocator gave out %d", name, chip, view[name])
			}
		}
		return nil
	}
	return fmt.Errorf("process %d is not in the snapshot", j.PID)
}
