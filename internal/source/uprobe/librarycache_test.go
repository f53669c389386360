package uprobe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A library that was used once is watched before it is used again, by another
// ttmond too.
func TestRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "libraries.json")
	program, library := fake(t)
	first := watch(t, Options{Memory: file})
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := first.Find(w.pid); return ok })
	w.end()

	again := watch(t, Options{Memory: file})
	if libs := again.Stats().Libraries; len(libs) != 1 || libs[0].Path != library || libs[0].Err != nil {
		t.Fatalf("watched from the start: %+v", libs)
	}
	w = startFake(t, exec.Command(program, library))
	w.do("make %d 5", 1<<20) // at once: the process has not been noticed yet
	w.do("take 64")
	eventually(t, "it is known since when it is watched", func() bool { return find(t, again, w.pid).Exact() })
}

// The file may be damaged, and its paths may be anything by now.
func TestRecall(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "libraries.json")
	if m, err := readMemory(file); err != nil || len(m.paths) != 0 {
		t.Errorf("no file: %v, %v", m, err)
	}
	if err := os.WriteFile(file, []byte(`{"libraries": ["/a/libtt_metal.so`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := readMemory(file); err == nil || len(m.paths) != 0 {
		t.Errorf("a damaged file: %v, %v", m, err)
	}
	m := &memory{file: file}
	for i := range maxRemembered + 5 {
		if err := m.add(fmt.Sprintf("/lib/%d/libtt_metal.so", i)); err != nil {
			t.Fatal(err)
		}
	}
	m.paths = append([]string{"relative/libtt_metal.so", "/etc/shadow"}, m.paths...)
	if err := m.save(); err != nil {
		t.Fatal(err)
	}
	m, err := readMemory(file)
	if err != nil || len(m.paths) != maxRemembered || m.paths[0] != fmt.Sprintf("/lib/%d/libtt_metal.so", maxRemembered+4) {
		t.Errorf("%v: %v", err, m.paths)
	}
}

// What was remembered is there as long as nothing newer is, also on a full disk.
func TestRecallOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	m := &memory{file: filepath.Join(dir, "libraries.json")}
	if err := m.add("/a/libtt_metal.so"); err != nil {
		t.Fatal(err)
	}
	if err := m.add("/" + strings.Repeat("b", 20_000) + "/libtt_metal.so"); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("on a full disk: %v", err)
	}
	if m, err := readMemory(m.file); err != nil || !slices.Equal(m.paths, []string{"/a/libtt_metal.so"}) {
		t.Errorf("%v: %v", err, m.paths)
	}
}

// A process may map a device under the name of a library. It is not opened.
func TestOpenMappedDevice(t *testing.T) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	page := os.Getpagesize()
	b, err := unix.Mmap(int(zero.Fd()), 0, page, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	start := uint64(uintptr(unsafe.Pointer(&b[0])))
	f, err := open(mapping{pid: os.Getpid(), start: start, end: start + uint64(page), path: "/dev/zero"})
	if err == nil {
		f.Close()
	}
	if !errors.Is(err, errNotRegular) {
		t.Errorf("opening it: %v", err)
	}
}

// What is not a file is not opened: to open a device, or the end of a pipe,
// does things.
func TestOpenRegular(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "libtt_metal.so")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", "/", "/no/such/file"} {
		if f, err := openRegular(path); err == nil {
			t.Errorf("%s was opened", f.Name())
		}
	}
	f, err := openRegular("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// Each setting of a machine has a reason of its own.
func TestObstacles(t *testing.T) {
	fine := limits{privileged: true, btf: true, lockdown: "[none] integrity confidentiality\n"}
	with := func(change func(*limits)) limits { m := fine; change(&m); return m }
	for _, c := range []struct {
		name string
		m    limits
		err  error
		want Obstacle
	}{
		{"no BPF in the kernel", fine, unix.ENOSYS, NoBPF},
		{"not root", with(func(m *limits) { m.privileged = false }), unix.EPERM, NoPrivilege},
		{"locked down", with(func(m *limits) { m.lockdown = "none integrity [confidentiality]\n" }), unix.EPERM, Lockdown},
		{"locked memory", with(func(m *limits) { m.memlock = unix.EPERM }), unix.EPERM, Memlock},
		{"seccomp", fine, unix.EPERM, NoBPF},
		{"a security module", fine, unix.EACCES, NoBPF},
		{"no BTF", with(func(m *limits) { m.btf = false }), unix.ENOENT, NoBTF},
		{"something else", fine, unix.EIO, OtherObstacle},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, ok := errors.AsType[*ObstacleError](c.m.obstacle(fmt.Errorf("loading: %w", c.err)))
			if !ok || o.Obstacle != c.want || !errors.Is(o, c.err) {
				t.Errorf("%v, want %s", o, c.want)
			}
		})
	}
	o, ok := errors.AsType[*ObstacleError](limits{paranoid: "4"}.slow(fmt.Errorf("opening: %w", unix.EACCES)))
	if !ok || o.Obstacle != Paranoid {
		t.Errorf("paranoid: %v", o)
	}
}
