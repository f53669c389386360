package proc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A container without a share in the host's pids, but with its /proc: the
// driver's list is zeros, the descriptors tell who it is.
func TestForeignProc(t *testing.T) {
	needRoot(t)
	if os.Getenv(insideVariable) == "" {
		tr := newTree(t, 1)
		holder := start(t, nil, "hold", tr.node(0), tr.node(0))
		holder.line()
		if err := os.Remove(filepath.Join(tr.dir, "proc")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/proc", filepath.Join(tr.dir, "proc")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PROCFS_TEST_TREE", tr.dir)
	}
	if !inside(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}) {
		return
	}
	r := (&tree{t, os.Getenv("PROCFS_TEST_TREE")}).reader()
	if r.view.ownPIDs || r.view.self == os.Getpid() {
		t.Fatalf("took the host's numbers for its own: %+v", r.view)
	}
	u := resolve(t, r, "2.10.0", listed(0, 0, 0))
	if len(u.Processes) != 1 {
		t.Fatalf("%+v", u.Processes)
	}
	wantUses(t, u, use{u.Processes[0].PID, model.Running, 0, 2, false})
	if p := u.Processes[0]; p.PID == 0 || p.Name.V != "exe" {
		t.Errorf("%+v", p)
	}

	// Our own pid 1 is another process on the host, and not the opener.
	u = resolve(t, r, "2.10.0", listed(0, 1, 0))
	wantUses(t, u, use{u.Processes[0].PID, model.Running, 0, 2, false})
}

func TestBootTime(t *testing.T) {
	tr := newTree(t, 0)
	byClock := bootTime(rootFS, true)
	if without := bootTime(tr.reader().root, false); without.Sub(byClock).Abs().Seconds() > 1 {
		t.Errorf("a tree without /proc/stat: booted %v, the clocks say %v", without, byClock)
	}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	byFile, ok := parseBootTime(b)
	if d := byClock.Sub(byFile); !ok || d.Abs().Seconds() > 2 {
		t.Errorf("booted %v by the clocks, %v by /proc/stat", byClock, byFile)
	}
	tr.write("proc/stat", "cpu 1\nbtime 17\n")
	if got := bootTime(tr.reader().root, false).Unix(); got != 17 {
		t.Errorf("a recorded tree booted at %d, want 17", got)
	}
}
