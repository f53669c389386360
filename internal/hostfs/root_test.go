package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

func TestRootPaths(t *testing.T) {
	for dir, want := range map[string]string{"": "/sys/x", "/": "/sys/x", "/host": "/host/sys/x", "/host/": "/host/sys/x", "tree": "tree/sys/x"} {
		t.Run(dir, func(t *testing.T) {
			if got := At(dir).Path("/sys/x"); got != want {
				t.Errorf("At(%q).Path = %q, want %q", dir, got, want)
			}
		})
	}
	if At("/").String() != "/" || At("/host").String() != "/host" {
		t.Error("a root does not say where it is")
	}
}

// TestDeviceNodesAreNotOpened: whatever a source asks for, a chip is not woken.
func TestDeviceNodesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "dev/tenstorrent"), 0o755); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(dir, "dev/tenstorrent/0")
	if err := unix.Mkfifo(node, 0o600); err != nil { // opening it would block
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/tenstorrent/0", "/proc/self/root/dev/tenstorrent/0", "/proc/self/fd/3", "/dev"} {
		t.Run(path, func(t *testing.T) {
			if fd, err := At(dir).Open(path); err == nil || fd >= 0 || !strings.Contains(err.Error(), "never opened") {
				t.Errorf("Open(%s): %d, %v", path, fd, err)
			}
		})
	}
	for _, path := range []string{"/dev/shm/tt_device_1_memory", "/proc/7/root/dev/shm/x", "/sys/dev/char/1:3", "/proc/7/fdinfo/3"} {
		t.Run(path, func(t *testing.T) {
			if mayBeNode(path) {
				t.Errorf("%s counts as a device node", path)
			}
		})
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("0123456789", 1000)
	for name, text := range map[string]string{"empty": "", "line": "42\n", "long": long} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := At(dir)
	for _, c := range []struct {
		name  string
		limit int
		want  string
	}{{"/empty", 10, ""}, {"/line", 10, "42\n"}, {"/line", 2, "42"}, {"/long", 1 << 20, long}, {"/long", 777, long[:777]}} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.Read(c.name, c.limit)
			if err != nil || string(got) != c.want {
				t.Errorf("Read(%s, %d): %d bytes, %v; want %d", c.name, c.limit, len(got), err, len(c.want))
			}
		})
	}
	if s, err := r.ReadString("/line"); err != nil || s != "42" {
		t.Errorf("ReadString: %q, %v", s, err)
	}
	if _, err := r.Read("/none", 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	names, err := r.Names("/")
	if diff := cmp.Diff([]string{"empty", "line", "long"}, names); diff != "" || err != nil {
		t.Errorf("Names: %v\n%s", err, diff)
	}
	if !r.Exists("/line") || r.Exists("/none") {
		t.Error("Exists is wrong")
	}
}

func TestStatus(t *testing.T) {
	for err, want := range map[error]model.Status{
		nil: model.Known, unix.ENOENT: model.Absent, unix.EACCES: model.Denied, unix.EPERM: model.Denied,
		unix.ENODATA: model.Resetting, unix.ENODEV: model.Lost, unix.ENXIO: model.Lost,
		ErrTimeout: model.Hung, unix.EINVAL: model.Absent,
	} {
		t.Run(fmt.Sprint(err), func(t *testing.T) {
			if got := Status(err); got != want {
				t.Errorf("Status(%v) = %s, want %s", err, got, want)
			}
			if err != nil && Status(fmt.Errorf("reading x: %w", err)) != want {
				t.Errorf("Status of a wrapped %v is not %s", err, want)
			}
		})
	}
}
