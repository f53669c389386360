package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/lib/libtest"
)

// noted is what the program wrote about one moment.
type noted struct {
	NS    int64                  `json:"ns"`
	Pools map[string][][2]uint64 `json:"pools"`
}

// recordTTNN records a run of recorded.py, and returns what it noted.
func recordTTNN(t *testing.T, dir string, env []string, steps string, flags ...string) (file string, moments []noted) {
	t.Helper()
	python, script := ttnnScript(t, "recorded.py")
	file = filepath.Join(dir, "run.ttrec")
	args := append([]string{"record", "-o", file}, flags...)
	args = append(args, "--", python, script, filepath.Join(dir, "noted"), "1", steps)
	cmd := exec.Command(filepath.Join(bin, "ttmon"), args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache")), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "recorded ") || !strings.Contains(string(out), "step 0") {
		t.Errorf("it says:\n%s", out)
	}
	f, err := os.Open(filepath.Join(dir, "noted"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var n noted
		if err := json.Unmarshal(s.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		moments = append(moments, n)
	}
	return file, moments
}

// held are the blocks of a moment of a recording, as the allocator counts
// addresses: from the base of the pool.
func held(s *recording.State) map[string][][2]uint64 {
	out := map[string][][2]uint64{"dram": {}, "l1": {}}
	for _, id := range s.Lists() {
		def, live, _ := s.List(id)
		for b := range live.All() {
			out[def.Pool] = append(out[def.Pool], [2]uint64{b.Addr - def.Geometry.Base, b.Size})
		}
	}
	return out
}

// At every moment of a recording the blocks are those that the allocator of
// the real ttnn said then.
func TestRecordEqualsTheAllocator(t *testing.T) {
	dir := t.TempDir()
	file, moments := recordTTNN(t, dir, mock(t, "blackhole_P150", dir), "300", "--stacks", "--output")
	if len(moments) < 300 {
		t.Fatalf("%d moments were noted", len(moments))
	}
	r, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := r.Begin() // and forward, as a replay does
	for i, m := range moments {
		at := time.Unix(0, m.NS)
		for err == nil {
			_, err = c.NextUntil(at)
		}
		if diff := cmp.Diff(m.Pools, held(c.State)); diff != "" {
			t.Fatalf("moment %d of %d: allocator (-) and recording (+):\n%s", i, len(moments), diff)
		}
		err = nil
		if i%37 == 0 { // and as a jump does
			s, err := r.Seek(at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.Pools, held(s.State)); diff != "" {
				t.Fatalf("moment %d, sought: allocator (-) and recording (+):\n%s", i, diff)
			}
		}
	}
	checkRun(t, r)
}

// checkRun checks what else a recording of recorded.py holds.
func checkRun(t *testing.T, r *recording.Reader) {
	t.Helper()
	lines, sites, allocs, lost := 0, 0, 0, uint64(0)
	c := r.Begin()
	for {
		x, err := c.Next()
		if err != nil {
			break
		}
		switch x.Kind {
		case recording.KindOutput:
			if strings.HasPrefix(x.Output.Text, "step ") {
				lines++
			}
		case recording.KindSite:
			if f, ok := x.Site.Where(); ok && strings.HasSuffix(f.File, "recorded.py") && f.Line > 0 {
				sites++
			}
		case recording.KindAlloc:
			allocs++
		case recording.KindLost:
			lost += x.Lost
		}
	}
	if lines != 6 || sites == 0 || allocs < 150 || lost != 0 {
		t.Errorf("%d lines, %d sites of the program, %d allocations, %d lost", lines, sites, allocs, lost)
	}
	if c.Meta.ExitCode == nil || *c.Meta.ExitCode != 0 || len(c.Meta.Command) != 5 {
		t.Errorf("meta: %+v", c.Meta)
	}
	if len(c.Processes()) != 0 {
		t.Errorf("processes at the end: %+v", c.Processes())
	}
}

// Whenever a recorder is killed, what it leaves opens, and is right as far as
// it goes: a program allocates as fast as it can all the while.
func TestRecorderKilled(t *testing.T) {
	hermetic.Long(t)
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := libtest.Build(dir, "plain"); err != nil {
		t.Fatal(err)
	}
	storm := exec.Command(filepath.Join(dir, "driver"), "storm", "1", "1")
	storm.Env = append(os.Environ(), "TTMON_EVENTS=1")
	if err := storm.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = storm.Process.Kill()
		_ = storm.Wait()
	}()
	opened := 0
	for i := range 12 {
		file := filepath.Join(dir, fmt.Sprintf("killed-%d.ttrec", i))
		cmd := exec.Command(filepath.Join(bin, "ttmon"), "--direct", "record", "-o", file, "--interval", "50ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 { // these are killed when there is something to find
			for size := int64(0); size <= 24; time.Sleep(10 * time.Millisecond) {
				if st, err := os.Stat(file); err == nil {
					size = st.Size()
				}
			}
		}
		time.Sleep(time.Duration(rand.IntN(60*(i+1))) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		r, err := recording.Open(file)
		if os.IsNotExist(err) {
			continue // killed before the file came to be
		}
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		c := r.Begin()
		for err == nil {
			_, err = c.Next()
		}
		if err.Error() != "EOF" || r.Damaged > 0 {
			t.Errorf("kill %d: %v, %d damaged", i, err, r.Damaged)
		}
		for _, id := range c.Lists() {
			_, live, _ := c.List(id)
			for b := range live.All() {
				if b.Size != libtest.BlockBytes(b.Addr) {
					t.Fatalf("kill %d: a block that was never there: %+v", i, b)
				}
			}
		}
		if r.Blocks() > 0 {
			opened++
		}
		r.Close()
	}
	if opened == 0 {
		t.Error("no recording had a block: the test does not test what it should")
	}
}

// A recording of a host is shown by the commands that show hosts.
func TestReplayOfAHost(t *testing.T) {
	h := start(t, sim.Options{Boards: "n300,p150a", Procs: []string{"name=llama,load=0.8"}})
	file := filepath.Join(t.TempDir(), "host.ttrec")
	run := func(args ...string) string {
		t.Helper()
		out, err := h.Command(t.Context(), filepath.Join(bin, "ttmon"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ttmon %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("record", "-o", file, "--interval", "100ms", "--duration", "1500ms", "-q")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"replay", file, "smi"}, "p150a"},
		{[]string{"replay", file, "--at", "start", "smi", "--json"}, `"schema":"ttmon.snapshot/1"`},
		{[]string{"replay", file, "--at", "-500ms", "smi", "--query-device=index,name", "--format=csv"}, "1, p150a"},
		{[]string{"replay", file, "mem", "--once"}, "n300"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if out := run(c.args...); !strings.Contains(out, c.want) {
				t.Errorf("%v has no %q:\n%s", c.args, c.want, out)
			}
		})
	}
}
