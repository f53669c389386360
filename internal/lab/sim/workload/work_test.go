package workload_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// readWork reads the work in the only ledger of a tree.
func readWork(t *testing.T, dir string) *ledgerfile.Work {
	t.Helper()
	found, _ := filepath.Glob(dir + "/dev/shm/" + ledgerfile.Prefix + "*")
	if len(found) != 1 {
		t.Fatalf("ledgers %v", found)
	}
	f, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r ledgerfile.WorkReader
	w, err := r.Read(int(f.Fd()))
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	return w
}

// until waits for work that is as it has to be.
func until(t *testing.T, dir, what string, is func(*ledgerfile.Work) bool) *ledgerfile.Work {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w := readWork(t, dir)
		if is(w) {
			return w
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", what, w)
		}
	}
}

// A workload works, hangs, resumes and idles as it is told, and its ledger says so.
func TestWork(t *testing.T) {
	tr := start(t, "n300", "name=llama,kind=ledger,dram=1G,work=matmul 400us x20; softmax 100us x20")
	dir := tr.Root()
	order := func(text string) {
		t.Helper()
		if _, err := tr.Ctl("work", "llama", text); err != nil {
			t.Fatal(err)
		}
	}
	w := until(t, dir, "at work", func(w *ledgerfile.Work) bool {
		return len(w.Chips) > 0 && w.Chips[0].Programs > 200 && len(w.Chips[0].Ops) == 2
	})
	if len(w.Chips) != 1 {
		t.Errorf("%d chips report: the second of an n300 cannot", len(w.Chips))
	}
	if c := w.Chips[0]; c.Longest != 400*time.Microsecond || c.LongestName != "matmul" || w.Host.Enqueued < c.Programs {
		t.Errorf("chip %+v, host %+v", c, w.Host)
	}
	order("hang")
	w = until(t, dir, "waiting", func(w *ledgerfile.Work) bool { return len(w.Host.Waiting) == 1 })
	before := w.Chips[0].Programs
	if w := readWork(t, dir); w.Chips[0].Programs != before {
		t.Errorf("%d programs, and %d after it hung", before, w.Chips[0].Programs)
	}
	order("resume")
	until(t, dir, "at work again", func(w *ledgerfile.Work) bool {
		return w.Chips[0].Programs > before && len(w.Host.Waiting) == 0
	})
	order("idle")
	until(t, dir, "idle", func(w *ledgerfile.Work) bool {
		return len(w.Host.Waiting) == 0 && !w.Host.LastFinish.Before(w.Host.LastEnqueue)
	})
	for _, bad := range [][]string{{"work", "llama", "dance"}, {"work", "missing", "hang"}, {"work", "llama"}} {
		t.Run(strings.Join(bad, " "), func(t *testing.T) {
			if _, err := tr.Ctl(bad...); err == nil {
				t.Errorf("%v is taken", bad)
			}
		})
	}
}
