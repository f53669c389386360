package kinds

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/sim"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

func TestMain(m *testing.M) {
	sim.Reexec(All())
	hermetic.Main(m)
}

// regions lists the statistics regions in a tree's /dev/shm.
func regions(dir string) []string {
	found, _ := filepath.Glob(dir + "/dev/shm/tt_device_*_memory")
	return found
}

func TestMetalWorkload(t *testing.T) {
	dir := t.TempDir()
	tr, err := sim.NewTree(sim.Options{
		Boards: "n150,n300,p150a,p300c",
		Procs:  []string{"name=llama,kind=metal,dram=1G,l1=2M,cb=64K,moves"},
	}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if len(regions(dir)) != 6 { // who starts a workload waits for it
		t.Fatalf("regions %v, want those of six chips", regions(dir))
	}
	if _, err := tr.Ctl("kill", "llama"); err != nil {
		t.Fatal(err)
	}
}

// TestChipsOfP300 has two endpoints with one serial and different ids.
func TestChipsOfP300(t *testing.T) {
	dir := t.TempDir()
	tr, err := sim.NewTree(sim.Options{Boards: "p300a"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	chips, err := chipsOf(workload.Spec{Root: dir, Devices: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if len(chips) != 2 || chips[0].id != chips[1].id+1 || chips[0].name != "0" || chips[1].logical != 1 {
		t.Errorf("chips %+v: want left (1) and right (0) of one board, in the order of addresses", chips)
	}
}

func TestScriptOf(t *testing.T) {
	chips := []chipRef{{"1", 11, 0, false}, {"10", 22, 1, false}, {"1R", 33, 2, true}}
	lines, err := scriptOf(workload.Spec{Params: workload.Params{"script": "open @1;open @10;open @1R"}}, chips)
	if want := []string{"open 11", "open 22", "open 33"}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("%q %v, want %q", lines, err, want)
	}
	for _, params := range []workload.Params{{"dramm": "1G"}, {"dram": "1G", "script": "quit"}} {
		t.Run(fmt.Sprint(params), func(t *testing.T) {
			if lines, err := scriptOf(workload.Spec{Params: params}, chips); err == nil {
				t.Errorf("%v gives %q", params, lines)
			}
		})
	}
}

// TestScriptMistakes: what is wrong with a script is said to who starts it.
func TestScriptMistakes(t *testing.T) {
	for script, want := range map[string]string{
		"alloc @0 dram 1G": "not open",
		"open @7":          `"@7"`,
		"dance":            `"dance"`,
	} {
		t.Run(script, func(t *testing.T) {
			tr, err := sim.NewTree(sim.Options{Boards: "n150", Procs: []string{"kind=metal,script=" + script}}, t.TempDir())
			if err == nil {
				tr.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want an error with %q", script, err, want)
			}
		})
	}
}

// TestScriptThatEnds: a workload is over when its script says so, and who
// started it does not wait for a sleep.
func TestScriptThatEnds(t *testing.T) {
	tr, err := sim.NewTree(sim.Options{Boards: "n150"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for _, script := range []string{"open @0;alloc @0 dram 1G;die", "open @0;quit", "open @0;exit", "open @0;sleep 1h"} {
		out, err := tr.Ctl("run", "name=short,kind=metal,script="+script)
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if script == "open @0;sleep 1h" {
			break // it ends with the host
		}
		pid := strings.TrimSpace(out)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if ps, err := tr.Ctl("ps"); err != nil || !strings.Contains(ps, pid+" ") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: process %s still runs", script, pid)
			}
		}
	}
}

func TestUnknownKind(t *testing.T) {
	dir := t.TempDir()
	_, err := sim.NewTree(sim.Options{Boards: "n150", Procs: []string{"kind=mettle"}}, dir)
	if err == nil || !strings.Contains(err.Error(), `"mettle"`) {
		t.Errorf("%v, want an error that names the kind", err)
	}
}
