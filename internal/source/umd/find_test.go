package umd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/fusetest"
)

const tiny = "arch: {0: blackhole}\nchip_unique_ids: {0: 5}\n"

func paths(found []Found) (p []string) {
	for _, f := range found {
		p = append(p, f.Path)
	}
	return p
}

func TestFinder(t *testing.T) {
	dir := t.TempDir()
	at := func(name string, age time.Duration, content string) string {
		p := filepath.Join(dir, name)
		write(t, p, []byte(content))
		when := time.Now().Add(-age)
		if err := os.Chtimes(p, when, when); err != nil {
			t.Fatal(err)
		}
		return p
	}
	at("tmp/umd_old/cluster_descriptor.yaml", time.Hour, tiny)
	changing := at("tmp/umd_new/cluster_descriptor.yaml", time.Minute, tiny)
	at("tmp/umd_bad/cluster_descriptor.yaml", time.Minute, "what: is this\n")
	at("tmp/umd_other/notes.txt", 0, tiny)
	at("tmp/other/cluster_descriptor.yaml", 0, tiny)
	at("home/mine.yaml", 2*time.Hour, tiny)
	if err := os.MkdirAll(filepath.Join(dir, "tmp/umd_pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "tmp/umd_pipe/cluster_descriptor.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}

	f := Finder{Root: hostfs.At(dir), Paths: []string{"/home/mine.yaml", "/home/gone.yaml"}}
	found, err := f.Poll()
	if want := []string{"/home/mine.yaml", "/tmp/umd_new/cluster_descriptor.yaml", "/tmp/umd_old/cluster_descriptor.yaml"}; !slices.Equal(paths(found), want) {
		t.Errorf("found %v, want %v", paths(found), want)
	}
	if err == nil || !strings.Contains(err.Error(), "/home/gone.yaml") || !strings.Contains(err.Error(), "umd_bad/cluster_descriptor.yaml: ") {
		t.Errorf("what cannot be read must be named: %v", err)
	}
	if found[0].Descriptor.Chips[0].UniqueID != 5 {
		t.Errorf("%+v", found[0].Descriptor)
	}

	if found, _ := f.Poll(); len(found) != 0 {
		t.Errorf("read again although nothing changed: %v", paths(found))
	}
	write(t, changing, []byte(tiny+"asic_locations: {0: 1}\n"))
	if found, _ := f.Poll(); len(found) != 1 || found[0].Descriptor.Chips[0].Location != 1 {
		t.Errorf("after a change: %v", paths(found))
	}
}

func TestFinderTakesTheNewest(t *testing.T) {
	dir := t.TempDir()
	for i := range maxDumps + 5 {
		p := filepath.Join(dir, fmt.Sprintf("tmp/umd_%03d/cluster_descriptor.yaml", i))
		write(t, p, []byte(tiny))
		when := time.Unix(int64(1_000_000+i), 0)
		if err := os.Chtimes(p, when, when); err != nil {
			t.Fatal(err)
		}
	}
	f := Finder{Root: hostfs.At(dir)}
	found, err := f.Poll()
	if err != nil || len(found) != maxDumps || !strings.Contains(found[0].Path, fmt.Sprintf("umd_%03d", maxDumps+4)) {
		t.Errorf("%d found, %v", len(found), err)
	}
	empty := Finder{Root: hostfs.At(t.TempDir())}
	if found, err := empty.Poll(); found != nil || err != nil {
		t.Errorf("a host without /tmp: %v, %v", found, err)
	}
}

// A user who fills /tmp with descriptors cannot make one Poll last for ever,
// nor keep others' from being read in the end.
func TestFinderReadsAFewAtATime(t *testing.T) {
	dir := t.TempDir()
	padding := "# " + strings.Repeat("x", maxPoll/3) + "\n"
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprintf("tmp/umd_%d/cluster_descriptor.yaml", i)), []byte(padding+tiny))
	}
	write(t, filepath.Join(dir, "tmp/umd_large/cluster_descriptor.yaml"), []byte(strings.Repeat(padding, 4)+tiny))
	f := Finder{Root: hostfs.At(dir)}
	for poll, want := range []int{2, 2, 2, 2, 0} {
		found, err := f.Poll()
		if len(found) != want || (err != nil) != (poll == 0) {
			t.Errorf("poll %d: %d descriptors, %v; want %d", poll, len(found), err, want)
		}
	}
}

func TestReadDescriptor(t *testing.T) {
	dir := t.TempDir()
	root := hostfs.At(dir)
	galaxy := samples(t)["6u_cluster_desc.yaml"]
	long := append(bytes.Repeat([]byte("# a long comment\n"), 5000), galaxy...) // longer than the first buffer
	write(t, filepath.Join(dir, "long.yaml"), long)
	if d, err := readNamed(root, "/long.yaml"); err != nil || len(d.Chips) != 32 {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(dir, "huge.yaml"), bytes.Repeat([]byte("# x\n"), maxDescriptor/4+1))
	if err := os.Symlink("long.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	named := Finder{Root: root, Paths: []string{"/link.yaml", "/huge.yaml"}}
	if found, err := named.Poll(); len(found) != 1 || found[0].Path != "/link.yaml" || !strings.Contains(err.Error(), "/huge.yaml is larger") {
		t.Errorf("the user's own link: %v, %v", paths(found), err)
	}
	for p, want := range map[string]string{
		"/huge.yaml":      "/huge.yaml is larger than 256 kB",
		"/gone.yaml":      "open /gone.yaml",
		"/gone/desc.yaml": "/gone",
	} {
		t.Run(p, func(t *testing.T) {
			if _, err := readNamed(root, p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", p, err, want)
			}
		})
	}
}

// Files of those who are not trusted are not read, and are as soon as they are.
func TestFinderTrust(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tmp/umd_a/cluster_descriptor.yaml"), []byte(tiny))
	trusted := false
	f := Finder{Root: hostfs.At(dir), Trust: func(uid int) bool { return trusted && uid == os.Getuid() }}
	if found, err := f.Poll(); len(found) != 0 || err != nil {
		t.Errorf("another user's: %v, %v", paths(found), err)
	}
	trusted = true
	if found, _ := f.Poll(); len(found) != 1 {
		t.Errorf("once trusted: %v", paths(found))
	}
}

// A file that replaces a descriptor, or a lock, keeps no caller waiting: a
// filesystem of theirs that does not answer, a link to one, a fifo.
func TestFilesThatWait(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tmp/umd_true/cluster_descriptor.yaml"), []byte(tiny))
	release := make(chan struct{})
	for _, at := range []string{"tmp/umd_mounted", "elsewhere"} {
		mount := filepath.Join(dir, at)
		if err := os.MkdirAll(mount, 0o755); err != nil {
			t.Fatal(err)
		}
		fusetest.Mount(t, mount, map[string]fusefs.InodeEmbedder{
			"cluster_descriptor.yaml":        &fusetest.File{Text: tiny, Release: release},
			"TT_UMD_LOCK.CHIP_IN_USE_0_PCIe": &fusetest.File{Text: "lock", Release: release},
		})
	}
	t.Cleanup(func() { close(release) }) // before the mounts are taken away
	for link, to := range map[string]string{
		"tmp/umd_linked": "elsewhere", "tmp/umd_file/cluster_descriptor.yaml": "elsewhere/cluster_descriptor.yaml",
		"dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe": "elsewhere/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe",
	} {
		link = filepath.Join(dir, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(filepath.Join(dir, to), link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "dev/shm/TT_UMD_LOCK.CHIP_IN_USE_1_PCIe"), 0o644); err != nil {
		t.Fatal(err)
	}

	f := Finder{Root: hostfs.At(dir)}
	found, err := f.Poll()
	if want := []string{"/tmp/umd_true/cluster_descriptor.yaml"}; !slices.Equal(paths(found), want) || err != nil {
		t.Errorf("found %v, want %v; %v", paths(found), want, err)
	}
	locks, err := Locks(hostfs.At(dir), LockDir)
	if len(locks) != 2 || locks[0].Held.Known() || locks[1].Held.Known() || err != nil {
		t.Errorf("locks %+v, %v", locks, err)
	}
}
