package replace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "", "second"} {
		if err := File(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != content {
			t.Errorf("%q, %v; want %q", b, err, content)
		}
		if st, err := os.Stat(path); err != nil || st.Mode() != 0o640 {
			t.Errorf("mode %v, %v", st.Mode(), err)
		}
	}
}

// What cannot be written changes nothing, and leaves nothing.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "file")
	if err := File(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := File(path, make([]byte, 20_000), 0o600)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("on a full disk: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
