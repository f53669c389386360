package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

func TestMain(m *testing.M) {
	sim.Reexec()
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// start starts a host that ends with the test.
func start(t *testing.T, o sim.Options) *sim.Host {
	t.Helper()
	needRoot(t)
	h, err := sim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// needRoot skips what cannot be done without the privilege.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mount namespaces and /dev/fuse")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("needs /dev/fuse: %v", err)
	} else {
		f.Close()
	}
}

// read returns a file of the host, or its error.
func read(h *sim.Host, path string) (string, error) {
	b, err := os.ReadFile(h.Root() + path)
	return string(b), err
}

func mustRead(t *testing.T, h *sim.Host, path string) string {
	t.Helper()
	text, err := read(h, path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ctl(t *testing.T, h *sim.Host, args ...string) string {
	t.Helper()
	out, err := h.Ctl(args...)
	if err != nil {
		t.Fatalf("ctl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// until waits for something that must come true.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// Paths of device n.
func class(n, file string) string { return "/sys/class/tenstorrent/tenstorrent!" + n + "/" + file }

// hwmon is the hwmon directory of device n.
func hwmon(t *testing.T, h *sim.Host, n string) string {
	t.Helper()
	dirs, err := filepath.Glob(h.Root() + class(n, "device/hwmon/hwmon*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("hwmon of device %s: %v %v", n, dirs, err)
	}
	return strings.TrimPrefix(dirs[0], h.Root())
}

// openFD opens a file of the host the way a monitor keeps it.
func openFD(t *testing.T, h *sim.Host, path string) int {
	t.Helper()
	fd, err := unix.Open(h.Root()+path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("opening %s: %v", path, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func pread(fd int) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Pread(fd, buf, 0)
	return string(buf[:max(n, 0)]), err
}
