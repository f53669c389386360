package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	if os.Getenv(Env) != "" {
		kinds = append(kinds, kinds[0])
		last := &kinds[len(kinds)-1]
		last.name, last.make = "writes", func() kind { return &writes{} }
		err := Run()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hermetic.Main(m)
}

// writes is a kind that leaves a text in a file.
type writes struct {
	File string `set:"file=PATH"`
	Text string `set:"text=TEXT"`
}

func (w *writes) check() error { return nil }

func (w *writes) run(_ context.Context, _ Spec, _ []chipRef, link link) error {
	err := os.WriteFile(w.File, []byte(w.Text), 0o600)
	if err == nil {
		link.answer(ready)
	}
	return err
}

// devices is a host with plain files for nodes.
type devices struct {
	indices []int
	mu      sync.Mutex
	work    map[int]float64
}

func (d *devices) Indices() []int { return d.indices }

func (d *devices) SetWork(index int, w float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work[index] = w
}

func (d *devices) load(index int) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.work[index]
}

func newManager(t *testing.T, indices ...int) (*Manager, *devices) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // workloads may be other users
		t.Fatal(err)
	}
	dir := filepath.Join(root, "dev/tenstorrent")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, i := range indices {
		node := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(node, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(node, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	describe(t, root, "n150")
	d := &devices{indices: indices, work: make(map[int]float64)}
	m := &Manager{Root: root, Devices: d}
	t.Cleanup(m.Close)
	return m, d
}

func run(t *testing.T, m *Manager, text string) *Process {
	t.Helper()
	specs, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Start(specs[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// holders are the processes that have a node open, with how often.
func holders(t *testing.T, m *Manager, index int) map[int]int {
	t.Helper()
	found := make(map[int]int)
	node := fmt.Sprintf("%s/dev/tenstorrent/%d", m.Root, index)
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == node {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			found[pid]++
		}
	}
	return found
}

func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func TestProcessLooksAsTold(t *testing.T) {
	m, d := newManager(t, 0, 1)
	p := run(t, m, "name=llama,cmd=python3 serve.py --port 8000,devices=1,fds=3,load=0.5")
	proc := fmt.Sprintf("/proc/%d/", p.PID)
	if b, _ := os.ReadFile(proc + "comm"); string(b) != "llama\n" {
		t.Errorf("comm %q", b)
	}
	if b, _ := os.ReadFile(proc + "cmdline"); string(b) != "python3\x00serve.py\x00--port\x008000\x00" {
		t.Errorf("cmdline %q", b)
	}
	if got := holders(t, m, 1); len(got) != 1 || got[p.PID] != 3 {
		t.Errorf("holders %v, want %d three times", got, p.PID)
	}
	if d.load(1) != 0.5 || d.load(0) != 0 {
		t.Errorf("loads %v and %v", d.load(0), d.load(1))
	}
	run(t, m, "name=second,load=0.25")
	if d.load(1) != 0.75 || d.load(0) != 0.25 {
		t.Errorf("loads of two: %v and %v", d.load(0), d.load(1))
	}
	if n := m.Kill("llama"); n != 1 || !gone(p.PID) {
		t.Errorf("killed %d, gone: %v", n, gone(p.PID))
	}
	if d.load(1) != 0.25 || len(m.List()) != 1 {
		t.Errorf("after the kill: load %v, %d left", d.load(1), len(m.List()))
	}
	if m.Kill("missing") != 0 {
		t.Error("killed no process")
	}
}

func TestForksInherit(t *testing.T) {
	m, _ := newManager(t, 0)
	p := run(t, m, "name=w,forks=2,fds=2")
	got := holders(t, m, 0)
	if len(got) != 3 || got[p.PID] != 2 {
		t.Errorf("holders %v, want the opener and two children", got)
	}
	m.Close()
	until(t, "all to end", func() bool { return len(holders(t, m, 0)) == 0 })
}

func TestOrphanOutlivesItsOpener(t *testing.T) {
	m, d := newManager(t, 0)
	p := run(t, m, "name=w,orphan")
	until(t, "the opener to end", func() bool { return gone(p.PID) })
	got := holders(t, m, 0)
	if _, opener := got[p.PID]; opener || len(got) != 1 {
		t.Errorf("holders %v, want one child", got)
	}
	if len(m.List()) != 1 || d.load(0) == 0 {
		t.Errorf("%d workloads, load %v: an orphan still runs", len(m.List()), d.load(0))
	}
	m.Kill(strconv.Itoa(p.PID))
	until(t, "the child to end", func() bool { return len(holders(t, m, 0)) == 0 })
}

func TestOtherUserAndNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	m, _ := newManager(t, 0)
	p := run(t, m, "name=w,user=65534,pidns")
	var st syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d", p.PID), &st); err != nil || st.Uid != 65534 {
		t.Errorf("uid %d, %v", st.Uid, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil || !slices.ContainsFunc(strings.Split(string(b), "\n"), func(l string) bool {
		return strings.HasPrefix(l, "NSpid:") && strings.HasSuffix(l, "\t1")
	}) {
		t.Errorf("not the first in a pid namespace: %v\n%s", err, b)
	}
}

func TestKindRuns(t *testing.T) {
	m, _ := newManager(t, 0)
	file := filepath.Join(t.TempDir(), "out")
	run(t, m, "kind=writes,file="+file+",text=hello")
	if b, err := os.ReadFile(file); string(b) != "hello" {
		t.Errorf("when it is ready, the file holds %q, %v", b, err)
	}
}

func TestStartTellsWhatIsWrong(t *testing.T) {
	m, _ := newManager(t, 0)
	for text, want := range map[string]string{
		"devices=7":                       "/dev/tenstorrent/7",
		"kind=bogus":                      `"bogus"`,
		"kind=writes,file=/nonexistent/x": "/nonexistent/x",
	} {
		t.Run(text, func(t *testing.T) {
			specs, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Start(specs[0]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error with %s", err, want)
			}
		})
	}
	if len(m.List()) != 0 {
		t.Errorf("%d workloads after failures", len(m.List()))
	}
	m.Close()
	specs, _ := Parse("")
	if _, err := m.Start(specs[0]); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("starting after the end: %v", err)
	}
}
