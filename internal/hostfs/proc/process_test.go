package proc

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that was opened stays the one that was meant, and is read once per
// sweep, for all callers.
func TestProcessIsReadOncePerSweep(t *testing.T) {
	tr := newTree(t, 0)
	tr.addProcess(7, "first", statTail, "x\x00", "")
	r := tr.reader()
	defer r.Close()
	p, err := r.Process(7)
	if err != nil || p.Name != "first" || p.InnerPID != 7 || p.UID != 1000 || p.StartTicks != 987654 || p.PPID != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	tr.addProcess(7, "second", statTail, "x\x00", "")
	if again, err := r.Process(7); again != p || err != nil || again.Name != "first" {
		t.Errorf("asked twice in a sweep: %+v, %v", again, err)
	}
	r.StartSweep()
	if p.open {
		t.Error("a process without a Hold is kept open")
	}
	if again, err := r.Process(7); again != p || err != nil || again.Name != "second" {
		t.Errorf("after an exec, in the next sweep: %+v, %v", again, err)
	}
	r.StartSweep()
	tr.addProcess(7, "third", strings.Replace(statTail, "987654", "987655", 1), "x\x00", "")
	if again, err := r.Process(7); again == p || err != nil || again.StartTicks != 987655 {
		t.Errorf("another process with the number: %+v, %v", again, err)
	}
}

func TestHold(t *testing.T) {
	r := New(rootFS)
	defer r.Close()
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	p, err := r.Process(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	r.Discard(p)
	if p.open || len(r.known) != 0 {
		t.Error("kept although discarded")
	}
	if p, err = r.Process(c.pid); err != nil {
		t.Fatal(err)
	}
	r.Hold(p)
	r.Discard(p)
	r.StartSweep()
	fd, err := p.PIDFD()
	if err != nil || !p.open || !p.Alive() {
		t.Fatalf("held: open %v, %v", p.open, err)
	}
	unix.Close(fd)
	c.stop()
	r.StartSweep()
	if _, err := r.Process(c.pid); !noProcess(err) {
		t.Errorf("an ended process: %v", err)
	}
	if _, err := p.PIDFD(); err == nil || p.Alive() {
		t.Error("an exited process is alive to its holder")
	}
	r.Release(p)
	if p.open {
		t.Error("open after its release")
	}
}

// What is kept open of a process that is held shows its current state, and
// never another process's once it has ended. Files that only look like a
// kernel's are not kept: they may be replaced.
func TestKeptFiles(t *testing.T) {
	r := New(rootFS)
	defer r.Close()
	me, err := r.Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r.Hold(me)
	before := r.describe(me.PID)
	defer os.WriteFile("/proc/self/comm", []byte(before.Name.V), 0)
	if err := os.WriteFile("/proc/self/comm", []byte("renamed"), 0); err != nil {
		t.Fatal(err)
	}
	r.StartSweep()
	after := r.describe(me.PID)
	if before.Name.V == "renamed" || after.Name.V != "renamed" || after.RSS.V == 0 || after.StartTicks != before.StartTicks {
		t.Errorf("before %+v, after %+v", before, after)
	}
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	p, err := r.Process(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	r.Hold(p)
	if !p.keepsFiles || !p.Alive() || r.keptOpen != 2 {
		t.Fatalf("keeps %v, alive %v, %d of all", p.keepsFiles, p.Alive(), r.keptOpen)
	}
	c.stop()
	r.StartSweep()
	if err := r.Refresh(p); !noProcess(err) || p.Alive() {
		t.Errorf("an ended process: %v, alive %v", err, p.Alive())
	}
	r.remove(p)
	r.Release(p)
	if p.keepsFiles || r.keptOpen != 1 {
		t.Errorf("released: keeps %v, %d of all", p.keepsFiles, r.keptOpen)
	}
	tr := newTree(t, 0)
	tr.addProcess(7, "first", statTail, "x\x00", "")
	other := tr.reader()
	defer other.Close()
	if p, err = other.Process(7); err != nil {
		t.Fatal(err)
	}
	if other.Hold(p); p.keepsFiles {
		t.Error("a file of a tree that is no /proc is kept open")
	}
}

// The pid of a thread is not a process.
func TestThreadsAreNoProcesses(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	r := New(rootFS)
	defer r.Close()
	threads := 0
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if tid == os.Getpid() {
			continue
		}
		threads++
		if _, err := r.Process(tid); !noProcess(err) {
			t.Errorf("thread %d passes for a process: %v", tid, err)
		}
	}
	if threads == 0 {
		t.Skip("needs a second thread in this process")
	}
}

func TestParseNamespace(t *testing.T) {
	for link, want := range map[string]uint64{
		"pid:[4026531836]": firstNamespace, "pid:[]": 0, "": 0, "mnt:[1]": 0, "pid:[x]": 0, "pid:[": 0,
	} {
		t.Run(link, func(t *testing.T) {
			if got := parseNamespace(link); got != want {
				t.Errorf("%q: %d, want %d", link, got, want)
			}
		})
	}
}

func TestPin(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	r := New(rootFS)
	defer r.Close()
	p, err := r.Process(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(tr.node(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tr.node(0)); err != nil {
		t.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	fd, number, err := p.Pin(uint64(sys.Dev), sys.Ino)
	if err != nil || number == "" {
		t.Fatal(number, err)
	}
	defer unix.Close(fd)
	var pinned unix.Stat_t
	if err := unix.Fstat(fd, &pinned); err != nil || pinned.Ino != sys.Ino {
		t.Errorf("pinned %d, want %d: %v", pinned.Ino, sys.Ino, err)
	}
	if _, _, err := p.Pin(uint64(sys.Dev), 1<<60); err == nil {
		t.Error("pinned a file that is not open")
	}
}
