package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mount serves a tree at a directory of the test. The mount is in this very
// namespace, so it is taken away at the end.
func mount(t *testing.T, root *Dir) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("needs /dev/fuse: %v", err)
	} else {
		f.Close()
	}
	dir := t.TempDir()
	m, err := Mount(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestEachReadIsNew(t *testing.T) {
	root := &Dir{}
	var n atomic.Int64
	root.Add("count", Attr(func() ([]byte, syscall.Errno) { return []byte{byte('0' + n.Add(1)), '\n'}, 0 }))
	dir := mount(t, root)
	fd, err := unix.Open(filepath.Join(dir, "count"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, want := range []string{"1\n", "2\n"} {
		buf := make([]byte, 10)
		n, err := unix.Pread(fd, buf, 0)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v; want %q", buf[:n], err, want)
		}
	}
	buf := make([]byte, 1) // a slow reader gets the rest of the same text
	unix.Pread(fd, buf, 0)
	first := string(buf)
	unix.Pread(fd, buf, 1)
	if first+string(buf) != "3\n" {
		t.Errorf("read by single bytes: %q", first+string(buf))
	}
	st, err := os.Stat(filepath.Join(dir, "count"))
	if err != nil || st.Size() != 4096 || st.Mode() != 0o444 {
		t.Errorf("stat: %v %v", st, err)
	}
}

func TestErrorsReachTheReader(t *testing.T) {
	root := &Dir{}
	for _, e := range []syscall.Errno{syscall.ENODATA, syscall.ENODEV, syscall.EINVAL, syscall.EIO} {
		root.Add("file", Attr(func() ([]byte, syscall.Errno) { return nil, e }))
		if _, err := os.ReadFile(filepath.Join(mount(t, root), "file")); !errors.Is(err, e) {
			t.Errorf("got %v, want %v", err, e)
		}
		root = &Dir{}
	}
}

func TestRemovedSubtree(t *testing.T) {
	root := &Dir{}
	root.Dir("a").Dir("b").Add("f", Text("old"))
	dir := mount(t, root)
	path := filepath.Join(dir, "a/b/f")
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for round := range 3 {
		root.Remove("a")
		if _, err := unix.Pread(fd, make([]byte, 10), 0); err != unix.ENODEV {
			t.Errorf("round %d: kept descriptor: %v, want ENODEV", round, err)
		}
		for _, p := range []string{path, filepath.Join(dir, "a/b"), filepath.Join(dir, "a")} {
			if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("round %d: %s: %v, want that it does not exist", round, p, err)
			}
		}
		root.Dir("a").Dir("b").Add("f", Text("new"))
		if b, err := os.ReadFile(path); err != nil || string(b) != "new\n" {
			t.Errorf("round %d: put back: %q %v", round, b, err)
		}
	}
	root.Dir("a").Dir("b").Add("f", Text("newer")) // replaced in place
	if b, err := os.ReadFile(path); err != nil || string(b) != "newer\n" {
		t.Errorf("replaced: %q %v", b, err)
	}
}

func TestOpenAndReleaseAreTold(t *testing.T) {
	root := &Dir{}
	var opens, releases atomic.Int64
	var who atomic.Int64
	root.Add("node", &File{Mode: 0o666, OnOpen: func(c Caller, _ uint32) (Opened, syscall.Errno) {
		opens.Add(1)
		who.Store(int64(c.TID))
		return Opened{Release: func() { releases.Add(1) }}, 0
	}})
	root.Add("no", &File{Mode: 0o666, OnOpen: func(Caller, uint32) (Opened, syscall.Errno) { return Opened{}, syscall.EBUSY }})
	dir := mount(t, root)
	fd, err := unix.Open(filepath.Join(dir, "node"), unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/task/" + strconv.FormatInt(who.Load(), 10)); err != nil {
		t.Errorf("the opener is said to be %d, which is no thread of ours", who.Load())
	}
	dup, _ := unix.Dup(fd)
	unix.Close(fd)
	if releases.Load() != 0 {
		t.Error("released while a duplicate is open")
	}
	unix.Close(dup)
	for releases.Load() == 0 { // the kernel tells it after close has returned
		runtime.Gosched()
	}
	if opens.Load() != 1 || releases.Load() != 1 {
		t.Errorf("%d opens, %d releases", opens.Load(), releases.Load())
	}
	if _, err := unix.Open(filepath.Join(dir, "no"), unix.O_RDWR, 0); err != unix.EBUSY {
		t.Errorf("refused open: %v, want EBUSY", err)
	}
}

func TestBeneath(t *testing.T) {
	host := t.TempDir()
	for _, name := range []string{"one", "two", "hidden"} {
		if err := os.Symlink("../"+name, filepath.Join(host, name)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := OpenHostDir(host, func(name, _ string) bool { return name == "hidden" })
	if err != nil {
		t.Fatal(err)
	}
	root := &Dir{}
	merged := root.Dir("d")
	merged.Beneath = h
	merged.Add("ours", &Link{Target: "here"})
	merged.Add("two", &Link{Target: "ours-two"})
	dir := filepath.Join(mount(t, root), "d")
	list := func() []string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := list(); !slices.Equal(got, []string{"one", "ours", "two"}) {
		t.Errorf("merged listing %v", got)
	}
	for name, want := range map[string]string{"one": "../one", "two": "ours-two", "ours": "here"} {
		t.Run(name, func(t *testing.T) {
			if got, err := os.Readlink(filepath.Join(dir, name)); got != want {
				t.Errorf("%s -> %q %v, want %q", name, got, err, want)
			}
		})
	}
	os.Remove(filepath.Join(host, "one")) // the host unplugs something
	os.Symlink("../three", filepath.Join(host, "three"))
	if got := list(); !slices.Equal(got, []string{"ours", "three", "two"}) {
		t.Errorf("after a change of the host: %v", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "one")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone from the host: %v", err)
	}
}

func TestPlainRewritesInPlace(t *testing.T) {
	dir := t.TempDir()
	root, text := &Dir{}, "1000\n"
	root.Dir("d").Add("f", Attr(func() ([]byte, syscall.Errno) { return []byte(text), 0 }))
	root.Add("l", &Link{Target: "d/f"})
	root.Dir("hidden").Add("f", Text("x"))
	root.Add("fails", Attr(func() ([]byte, syscall.Errno) { return nil, syscall.ENODATA }))
	p := NewPlain(dir)
	defer p.Close()
	update := func() {
		t.Helper()
		if err := p.Update(root, func(path string) bool { return path == "/hidden" }); err != nil {
			t.Fatal(err)
		}
	}
	update()
	f, err := os.Open(filepath.Join(dir, "l"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, text = range []string{"9\n", "123456\n"} {
		update()
		buf := make([]byte, 20)
		if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != text {
			t.Errorf("a kept descriptor reads %q, want %q", buf[:n], text)
		}
	}
	for _, name := range []string{"hidden", "fails"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}
