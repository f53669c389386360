package workload_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/sim"
)

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
