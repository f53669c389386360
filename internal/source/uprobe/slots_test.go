package uprobe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/model"
)

// forAll lets every user into a folder of the test.
func forAll(dir string) {
	for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
}

// duplicates makes copies of the library, each in a folder of its own, for all.
func duplicates(t *testing.T, library string, n int) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	forAll(dir)
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint(i), libraryName)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// startWith starts a fake program that maps many libraries.
func startWith(t *testing.T, program string, uid int, libraries []string) *workload {
	t.Helper()
	cmd := exec.Command(program, libraries[0])
	cmd.Dir = "/"
	cmd.Env = []string{"LD_PRELOAD=" + strings.Join(libraries, ":")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	return startFake(t, cmd)
}

func (s *Source) inUse() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.libraries {
		if len(l.pids) > 0 {
			n++
		}
	}
	return n
}

// TestLibrariesOfAUser: a user's libraries take that user's share of the places,
// and all of them are free again when their process has ended.
func TestLibrariesOfAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	s := watch(t, Options{MaxLibraries: 16})
	program, library := fake(t)
	forAll(filepath.Dir(program))
	many := duplicates(t, library, 20)
	w := startWith(t, program, 60000, many)
	share := 16 / 4
	eventually(t, "the user's share is used", func() bool { return s.inUse() == share })
	eventually(t, "more is refused", func() bool { return s.slots.State().Refused > 0 })

	other := startWith(t, program, 60001, many[:1])
	eventually(t, "another user's process is watched", func() bool { p, ok := s.Find(other.pid); return ok && !p.Late })
	own := startFake(t, exec.Command(program, library))
	eventually(t, "root's process is watched", func() bool { p, ok := s.Find(own.pid); return ok && !p.Late })
	other.end()
	own.end()

	w.end()
	eventually(t, "no place is taken", func() bool { return s.inUse() == 0 })
	s.mu.Lock()
	left := len(s.known)
	s.mu.Unlock()
	if left != 0 {
		t.Errorf("%d processes are known, and all have ended", left)
	}
	// What no process uses makes room.
	again := startWith(t, program, 60000, duplicates(t, library, share))
	eventually(t, "the share is there again", func() bool { return s.inUse() == share })
	again.end()
	if st := s.slots.State(); st.Used > 16 {
		t.Errorf("%+v", st)
	}
}

// TestReadTime: what reading a user's libraries costs is bounded, and forgiven
// with time; root's are always read.
func TestReadTime(t *testing.T) {
	r := reads{spent: map[int]budget.Meter{}}
	now := time.Now()
	for uid, want := range map[int]error{0: nil, 60000: errReadTime} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			r.note(uid, readBurst, now)
			if err := r.allow(uid, now); err != want {
				t.Errorf("uid %d: %v", uid, err)
			}
		})
	}
	if err := r.allow(60001, now); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := r.allow(60000, now.Add(time.Second)); err != nil {
		t.Errorf("a second later: %v", err)
	}
	for uid := range 2 * maxSpent {
		r.note(70000+uid, time.Millisecond, now.Add(time.Duration(uid)*time.Second))
	}
	if len(r.spent) > maxSpent+1 {
		t.Errorf("%d users are remembered", len(r.spent))
	}
}

// TestGuardedReader: a library on a disk that does not answer is given up, and
// so is every later one while too many of such reads are there.
func TestGuardedReader(t *testing.T) {
	_, library := fake(t)
	f, err := os.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, blocked := newLibrary(f, library, 0, time.Now().Add(time.Minute))
	if l.err != nil || len(l.probes) != inFake() || !l.onHost || blocked != nil {
		t.Fatalf("%d probes, %v; blocked %v", len(l.probes), l.err, blocked)
	}
	dir := t.TempDir()
	release := make(chan struct{})
	fusetest.Mount(t, dir, map[string]fusefs.InodeEmbedder{libraryName: &fusetest.File{Text: "x", Release: release}})
	var closing sync.Once
	free := func() { closing.Do(func() { close(release) }) }
	t.Cleanup(free)
	waiting, err := os.Open(filepath.Join(dir, libraryName))
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if served, err := onFUSE(waiting); err != nil || !served {
		t.Errorf("on FUSE: %v, %v", served, err)
	}
	r, err := newGuardedReader(waiting, time.Now().Add(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := findProbes(r); !errors.Is(err, hostfs.ErrTimeout) {
		t.Errorf("a file that does not answer: %v", err)
	}
	all := reads{spent: map[int]budget.Meter{}}
	if b := r.close(); b != nil { // where no signal ends the read
		for range maxBlocked {
			all.blocked = append(all.blocked, b)
		}
		if err := all.allow(0, time.Now()); err != errBlocked {
			t.Errorf("with %d reads that do not end: %v", maxBlocked, err)
		}
		all.blocked = []*hostfs.Batch{b}
	}
	free()
	eventually(t, "nothing is left of it", func() bool { return all.allow(0, time.Now()) == nil && len(all.blocked) == 0 })
}

// TestServedLibrary: a library that a user's program serves is not watched, and
// its process says why.
func TestServedLibrary(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fusetest.Mount(t, dir, map[string]fusefs.InodeEmbedder{libraryName: &fusefs.MemRegularFile{Data: text}})
	w := startFake(t, exec.Command(program, filepath.Join(dir, libraryName)))
	why := func() (d model.Doubt) {
		for _, silent := range s.Claims().Silent {
			if silent.Process.PID == w.pid {
				d = silent.Why
			}
		}
		return d
	}
	eventually(t, "the process is said not to be watched", func() bool { return why().Kind != "" })
	if d := why(); d.Kind != model.LibraryUnwatched || d.Detail != errServed.Error() {
		t.Errorf("%+v", d)
	}
	w.do("make %d 5", 1<<20)
	if n := s.inUse(); n != 0 {
		t.Errorf("%d libraries are watched", n)
	}
}

// TestLibraryGoneAtOnce: a user maps a library and removes the file at once, so
// that a sweep finds it gone while the process is only about to be noted.
func TestLibraryGoneAtOnce(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	defer s.close()
	_, library := fake(t)
	path := duplicates(t, library, 1)[0]
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	id, l, err := s.library(f, path, 60000, os.Getpid())
	if err != nil || l.err != nil {
		t.Fatal(err, l.err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.dropGone()
	if s.libraries[id] != l || len(s.known[os.Getpid()]) != 1 {
		t.Error("the library was dropped while a process has it")
	}
	s.mu.Lock()
	s.forget(os.Getpid())
	s.mu.Unlock()
	s.dropGone()
	if len(s.libraries) != 0 || s.retired.waiting() != 1 || s.slots.Used() != 1 {
		t.Errorf("%d libraries, %d to be closed, %d places taken: nothing is closed while others wait", len(s.libraries), s.retired.waiting(), s.slots.Used())
	}
	if !s.retired.closeNext() || s.retired.closeNext() || s.slots.Used() != 0 || len(l.links[groupAllocators]) != 0 {
		t.Errorf("it was not closed: %d places taken, %d probes", s.slots.Used(), len(l.links[groupAllocators]))
	}
}

// TestLibraryReadOnABusyHost: a library that could not be read in time is read
// again for the next process, and takes no place meanwhile.
func TestLibraryReadOnABusyHost(t *testing.T) {
	s, err := Open(Options{libraryTimeout: time.Nanosecond})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	defer s.close()
	_, path := fake(t)
	open := func() *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if _, _, err := s.library(open(), path, 0, os.Getpid()); !errors.Is(err, hostfs.ErrTimeout) {
		t.Fatalf("no time to read it: %v", err)
	}
	if len(s.libraries) != 0 || len(s.known) != 0 || s.slots.Used() != 0 {
		t.Errorf("%d libraries, %d processes, %d places taken", len(s.libraries), len(s.known), s.slots.Used())
	}
	s.o.libraryTimeout = time.Minute
	if _, l, err := s.library(open(), path, 0, os.Getpid()); err != nil || l.err != nil || len(l.links[groupAllocators]) == 0 {
		t.Errorf("the next process: %v, %+v", err, l)
	}
}
