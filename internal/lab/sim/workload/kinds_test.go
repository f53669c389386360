package workload_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// regions lists the statistics regions in a tree's /dev/shm.
func regions(dir string) []string {
	found, _ := filepath.Glob(dir + "/dev/shm/tt_device_*_memory")
	return found
}

func TestMetalWorkload(t *testing.T) {
	tr := start(t, "n150,n300,p150a,p300c", "name=llama,kind=metal,dram=1G,l1=2M,cb=64K,moves")
	dir := tr.Root()
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
			if why := refused(t, "n150", "kind=metal,script="+script); !strings.Contains(why, want) {
				t.Errorf("%q: %s, want an error with %q", script, why, want)
			}
		})
	}
}

// TestScriptThatEnds: a workload is over when its script says so, and who
// started it does not wait for a sleep.
func TestScriptThatEnds(t *testing.T) {
	tr := start(t, "n150")
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
	if why := refused(t, "n150", "kind=mettle"); !strings.Contains(why, `"mettle"`) {
		t.Errorf("%s, want an error that names the kind", why)
	}
}
