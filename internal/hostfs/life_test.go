package hostfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openFile opens a file with a text for a batch.
func openFile(t *testing.T, text string) (fd int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func newBatch(t *testing.T, reads int) *Batch {
	t.Helper()
	b, err := NewBatch(reads, reads*64)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// count is how many descriptors and children this process has.
func count(t *testing.T) (descriptors, children int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		children += len(strings.Fields(string(b)))
	}
	return len(fds), children
}

// TestNothingIsLeftOfReaders: a daemon makes batches for years.
func TestNothingIsLeftOfReaders(t *testing.T) {
	fd := openFile(t, "42\n")
	b := newBatch(t, 4)
	round := func() {
		for range 4 {
			b.Add(fd, 64)
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		for b.Reap() {
			Wait([]*Batch{b}, time.Now().Add(time.Second))
		}
		if b.Done() != 4 {
			t.Fatalf("%d reads of 4 are over", b.Done())
		}
		b.Reset()
	}
	round()
	descriptors, children := count(t)
	for range 200 {
		round()
	}
	for range 500 { // a reader that is a thread closes its last descriptor a moment later
		d, c := count(t)
		if d <= descriptors && c <= children {
			b.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d, c := count(t)
	t.Errorf("%d descriptors and %d children, were %d and %d", d, c, descriptors, children)
}

// TestReadersHearNoSignals: the Go runtime sends itself signals all the time,
// and its handler must never run in a reader, which has no goroutine.
func TestReadersHearNoSignals(t *testing.T) {
	fd := openFile(t, "42\n")
	stop := make(chan struct{})
	var senders sync.WaitGroup
	senders.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(os.Getpid(), unix.SIGURG)
				runtime.GC() // stops the world: more of them, to threads
			}
		}
	})
	defer senders.Wait()
	defer close(stop)
	b := newBatch(t, 8)
	defer b.Close()
	for range 100 {
		for range 8 {
			b.Add(fd, 64)
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		for b.Reap() {
			Wait([]*Batch{b}, time.Now().Add(time.Second))
		}
		for i := range 8 {
			if got, err := b.Result(i); err != nil || string(got) != "42\n" {
				t.Fatalf("read %d: %q, %v", i, got, err)
			}
		}
		b.Reset()
	}
}

// TestBlockedBatchIsKept: as long as the kernel may write to it, a batch is
// neither reused nor unmapped.
func TestBlockedBatchIsKept(t *testing.T) {
	path, reached, release := blockingFile(t)
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBatch(t, 3)
			good := openFile(t, "good\n")
			blocked, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, fd := range []int{good, blocked, good} {
				b.Add(fd, 64)
			}
			if err := start(b); err != nil {
				t.Fatal(err)
			}
			unix.Close(blocked) // the reader has its own
			<-reached
			if !b.Reap() || b.Done() != 1 {
				t.Errorf("running %v, %d reads are over; want the first of a running batch", b.Reap(), b.Done())
			}
			b.Close()
			if b.arena == nil {
				t.Fatal("unmapped while a read may still write to it")
			}
			for what, f := range map[string]func(){"Reset": b.Reset, "Add": func() { b.Add(good, 1) }} {
				if !panics(f) {
					t.Errorf("%s of a running batch", what)
				}
			}
			release <- struct{}{}
			for b.Reap() {
				Wait([]*Batch{b}, time.Now().Add(time.Second))
			}
			for i, want := range []string{"good\n", "late\n", "good\n"} {
				if got, err := b.Result(i); err != nil || string(got) != want {
					t.Errorf("read %d, in the end: %q, %v; want %q", i, got, err, want)
				}
			}
			b.Close()
			if b.arena != nil {
				t.Error("not unmapped")
			}
		})
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestFullBatch(t *testing.T) {
	b := newBatch(t, 2)
	defer b.Close()
	b.Add(0, 64)
	if !panics(func() { b.Add(0, 65) }) {
		t.Error("more bytes than there is room for")
	}
	b.Add(0, 64)
	if !panics(func() { b.Add(0, 0) }) {
		t.Error("more reads than there is room for")
	}
}

// TestDirIsOfOneProcess: what is looked up in an open /proc/<pid> is never
// about a later process with its number.
func TestDirIsOfOneProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	proc, err := At("/").OpenDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	dir, err := proc.OpenDir(strconv.Itoa(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	twin, err := dir.Dup()
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
	defer twin.Close()
	buf := make([]byte, 4096)
	if n, err := twin.Read("comm", buf); err != nil || string(buf[:n]) != "sleep\n" {
		t.Errorf("comm %q, %v", buf[:n], err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if n, err := twin.Read("comm", buf); !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) {
		t.Errorf("comm of a process that has ended: %q, %v", buf[:n], err)
	}
}

// TestOpenInStaysInside: a container decides what is at its paths, and not
// what we open.
func TestOpenInStaysInside(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"root/dev/shm", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"root/dev/shm/inner": "", "outside/outer": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"root/absolute": "/dev/shm", "root/up": "../outside", "root/far": dir + "/outside", "root/magic": "/proc/self/cwd", "root/loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d := openTestDir(t, dir)
	root, err := d.open("root", pinFlags)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	again, err := unix.Openat2(root, ".", &unix.OpenHow{Flags: pinFlags})
	old := errors.Is(err, unix.ENOSYS)
	unix.Close(again)
	for path, want := range map[string][]string{
		"/dev/shm": {"inner"}, "/absolute": {"inner"}, "/absolute/": {"inner"}, "dev/../../dev/shm": {"inner"},
		"/up": nil, "/far": nil, "/magic": nil, "/loop": nil, "/nothing": nil, "/dev/shm/inner": nil,
	} {
		t.Run(path, func(t *testing.T) {
			if !old {
				fd, err := d.OpenIn("root", path)
				if names := namesAt(t, fd, err); !slices.Equal(names, want) {
					t.Errorf("%s: %v, want %v", path, names, want)
				}
			}
			if path != "/dev/shm" {
				want = nil // old kernels: no links, and no way up
			}
			fd, err := openBelow(root, path)
			if names := namesAt(t, fd, err); !slices.Equal(names, want) {
				t.Errorf("%s, on an old kernel: %v, want %v", path, names, want)
			}
		})
	}
	if _, err := d.OpenIn("nothing", "/dev/shm"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a root that is not there: %v", err)
	}
}

// namesAt lists a pinned directory, if it could be opened.
func namesAt(t *testing.T, fd int, err error) []string {
	t.Helper()
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	names, err := NamesAt(fd)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestNothingWaits: a pipe in place of a file blocks no caller up, and is not
// even opened for a look at it.
func TestNothingWaits(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openTestDir(t, dir)
	fd, err := d.Pin("pipe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.EBADF) {
		t.Errorf("a pinned pipe can be read: %v", err)
	}
	unix.Close(fd)
	if fd, err = d.Open("pipe"); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if n, err := d.Read("pipe", make([]byte, 10)); n != 0 {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if _, err := At(dir).Readlink("/pipe"); !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "/pipe") {
		t.Errorf("Readlink of a pipe: %v", err)
	}
	if names, err := At(dir).Names("/none"); names != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v, %v", names, err)
	}
}
