package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func openTestDir(t testing.TB, dir string) Dir {
	t.Helper()
	d, err := At(dir).OpenDir("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestDirEach(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 300 { // more than one buffer full
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("x", i%200))
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	d := openTestDir(t, dir)
	for range 2 { // from the beginning each time
		var got []string
		if err := d.Each(make([]byte, 2048), func(name []byte) bool {
			got = append(got, string(name))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	seen := 0
	if err := d.Each(make([]byte, 2048), func([]byte) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
		t.Errorf("stopped after %d entries, err %v; want 3", seen, err)
	}
}

func TestDirReadFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d := openTestDir(t, dir)
	var buf [4]byte
	if n, err := d.Read("file", buf[:]); err != nil || string(buf[:n]) != "0123" {
		t.Errorf("Read(file) = %q, %v", buf[:n], err)
	}
	for limit, want := range map[int]string{4: "<012", 5: "<0123", 100: "<0123456789"} {
		t.Run(fmt.Sprintf("up to %d", limit), func(t *testing.T) {
			if got, err := d.Append([]byte("<"), "file", limit); err != nil || string(got) != want {
				t.Errorf("Append up to %d = %q, %v; want %q", limit, got, err, want)
			}
		})
	}
	if _, err := d.Append(nil, "link", 100); !errors.Is(err, unix.ELOOP) {
		t.Errorf("Append(link) = %v, want ELOOP", err)
	}
	if _, err := d.Read("link", buf[:]); !errors.Is(err, unix.ELOOP) {
		t.Errorf("Read(link) = %v, want ELOOP", err)
	}
	if n, err := d.Readlink("link", buf[:]); err != nil || string(buf[:n]) != "file" {
		t.Errorf("Readlink(link) = %q, %v", buf[:n], err)
	}
	if _, err := d.Read("nothing", buf[:]); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Read(nothing) = %v, want ENOENT", err)
	}
	if _, err := d.Read(strings.Repeat("n", maxName), buf[:]); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a name beyond the limit: %v, want ENAMETOOLONG", err)
	}
}

// A descriptor below /proc/<pid>/fd leads to the open file itself; Stat may
// look at it, Read must not open it.
func TestDirAtDescriptors(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	d, err := At("/").OpenDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	name := strconv.Itoa(int(null.Fd()))
	var st unix.Statx_t
	if err := d.Stat(name, &st); err != nil || st.Rdev_major != 1 || st.Rdev_minor != 3 {
		t.Errorf("Stat(%s) = %d:%d, %v; want 1:3", name, st.Rdev_major, st.Rdev_minor, err)
	}
	if _, err := d.Read(name, make([]byte, 1)); !errors.Is(err, unix.ELOOP) {
		t.Errorf("Read of a descriptor = %v, want ELOOP", err)
	}
}

func TestDirAllocatesNothing(t *testing.T) {
	d, err := At("/").OpenDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	entries, link := make([]byte, 4096), make([]byte, 256)
	var st unix.Statx_t
	if n := testing.AllocsPerRun(20, func() {
		_ = d.Each(entries, func(name []byte) bool {
			_, _ = d.Readlink(string(name), link)
			_ = d.Stat(string(name), &st)
			return true
		})
	}); n != 0 {
		t.Errorf("a scan allocates %v times", n)
	}
}
