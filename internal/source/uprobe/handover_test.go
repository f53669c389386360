package uprobe

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// runUntil starts a source that the test ends itself.
func runUntil(t *testing.T, s *Source) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return end
}

// copies duplicates descriptors, as sending them to another process does.
func copies(t *testing.T, files []File) (out []File) {
	t.Helper()
	for _, f := range files {
		fd, err := unix.FcntlInt(uintptr(f.FD), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out = append(out, File{f.Name, fd})
	}
	return out
}

// TestTakeover: the successor knows all that was, and misses nothing of what
// happens meanwhile, also where it brings another program for the kernel.
func TestTakeover(t *testing.T) {
	t.Run("the same program", func(t *testing.T) { testTakeover(t, func(*handed) {}) })
	t.Run("another release's program", func(t *testing.T) { testTakeover(t, func(h *handed) { h.Object = "another" }) })
}

// TestKernelFormat: what the program of one release leaves in the kernel to that of the
// next keeps its layout. Whatever changes here raises kernelFormat.
func TestKernelFormat(t *testing.T) {
	spec, err := loadWatch()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, m := range spec.Maps {
		if !strings.HasPrefix(name, ".") {
			got = append(got, fmt.Sprintf("%s: %v of %d and %d bytes", name, m.Type, m.KeySize, m.ValueSize))
		}
	}
	slices.Sort(got)
	for _, x := range []any{
		watchEvent{},
		watchObjectEvent{},
		watchListEvent{},
		watchTakeEvent{},
		watchChangeEvent{},
		watchBlockEvent{},
		watchWholeEvent{},
		watchProviderEvent{},
		watchRecordEvent{},
		watchLayoutEvent{},
		watchNoRoomEvent{},
		watchClashEvent{},
		watchTraceEvent{},
		watchFrame{},
		watchFailed{},
		watchWorkEvent{},
		watchBatch{},
		watchExitEvent{},
		watchForkEvent{},
	} {
		got = append(got, fmt.Sprintf("%T: %d bytes", x, binary.Size(x)))
	}
	golden.Check(t, "testdata/kernelformat.txt", []byte(fmt.Sprintf("format %d\n%s\n", kernelFormat, strings.Join(got, "\n"))))
}

func testTakeover(t *testing.T, change func(*handed)) {
	old, err := Open(Options{fresh: time.Minute})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	endOld := runUntil(t, old)
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := old.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	var want []uint64
	for range 5 {
		want = append(want, w.number("take 64"))
	}
	w.do("free %d", want[1])
	want = slices.Delete(want, 1, 2)

	// A takeover that comes to nothing.
	_, _, done, err := old.Export()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, w.number("take 64"))
	done(false)
	if got := addresses(dram(t, find(t, old, w.pid))); !slices.Equal(got, want) {
		t.Fatalf("after a takeover that failed: %v, want %v", got, want)
	}

	state, files, done, err := old.Export()
	if err != nil {
		t.Fatal(err)
	}
	files = copies(t, files)
	want = append(want, w.number("take 128")) // while no daemon reads
	done(true)
	var h handed
	if err = json.Unmarshal(state, &h); err == nil {
		change(&h)
		state, err = json.Marshal(h)
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := OpenFrom(Options{}, state, files)
	if err != nil {
		t.Fatal(err)
	}
	endOld()
	if h.Object != object() { // what is attached jumps to the new one
		var jumpsTo ebpf.ProgramID
		info, err := next.kernel.OnHit.Info()
		if err == nil {
			err = next.kernel.Jumps.Lookup(uint32(watchJumpJUMP_HIT), &jumpsTo)
		}
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := info.ID(); !ok || id != jumpsTo {
			t.Errorf("it jumps to program %d, not %d", jumpsTo, id)
		}
	}
	if got, was := next.known[w.pid], old.known[w.pid]; !slices.Equal(got, was) || len(was) != 1 {
		t.Errorf("the successor knows the libraries %v of the process, its predecessor %v", got, was)
	}
	want = append(want, w.number("take 64"))
	runUntil(t, next)
	want = append(want, w.number("take 64"))
	p := find(t, next, w.pid)
	if got := addresses(dram(t, p)); !slices.Equal(got, want) || !p.Exact() {
		t.Errorf("after the takeover: %v, want %v; exact %v, late %v, lost %d", got, want, p.Exact(), p.Late, p.Lost)
	}
	if !slices.Equal(p.Allocators[0].Chips, []uint64{5}) {
		t.Errorf("chips %v", p.Allocators[0].Chips)
	}
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	eventually(t, "its end is seen", func() bool { _, ok := next.Find(w.pid); return !ok })
}

// A successor reads no library: those of users may be many, and slow, and all
// wait for it.
func TestTakeoverReadsNoLibrary(t *testing.T) {
	old, err := Open(Options{})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	endOld := runUntil(t, old)
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := old.Find(w.pid); return ok })
	state, files, done, err := old.Export()
	if err != nil {
		t.Fatal(err)
	}
	files = copies(t, files)
	for i := range files {
		if files[i].Name == "library 0" { // a directory cannot be read
			unix.Close(files[i].FD)
			if files[i].FD, err = unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	done(true)
	next, err := OpenFrom(Options{}, state, files)
	if err != nil {
		t.Fatal(err)
	}
	defer next.close()
	defer endOld()
	list := next.Stats().Libraries
	if len(list) != 1 || list[0].Err != nil {
		t.Fatalf("libraries %+v", list)
	}
	for id, was := range old.libraries {
		now := next.libraries[id]
		if len(was.probes) == 0 || len(now.probes) != len(was.probes) {
			t.Fatalf("%d probes, of its predecessor's %d", len(now.probes), len(was.probes))
		}
		for i := range now.probes {
			a, b := &now.probes[i], &was.probes[i]
			if a.cookie() != b.cookie() || a.offset != b.offset || (a.need == metalabi.Learning) != (b.need == metalabi.Learning) {
				t.Errorf("probe %+v, of its predecessor %+v", a, b)
			}
		}
	}
}

func TestOpenFromForeignState(t *testing.T) {
	for _, state := range []string{"", "{}", `{"Object":"other"}`} {
		if s, err := OpenFrom(Options{}, []byte(state), nil); err == nil {
			s.close()
			t.Errorf("%q is accepted", state)
		}
	}
	if s, err := OpenFrom(Options{}, []byte(`{"Object":"`+object()+`"}`), nil); err == nil {
		s.close()
		t.Error("a state without descriptors is accepted")
	}
}
