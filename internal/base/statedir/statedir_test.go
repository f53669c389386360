package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "runs")
	const file = "lock"
	if Written(dir, file) {
		t.Error("a directory that is not there is written")
	}
	unlock, err := Lock(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, file); !errors.Is(err, ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if !Written(dir, file) {
		t.Error("nothing writes a locked directory")
	}
	waited := make(chan func())
	go func() {
		unlock, err := Wait(t.Context(), dir, file, nil)
		if err != nil {
			t.Error(err)
		}
		waited <- unlock
	}()
	unlock()
	(<-waited)()
	if Written(dir, file) {
		t.Error("an unlocked directory is written")
	}
}

// A directory that cannot be locked at all cannot be written either: there is nothing to wait for.
func TestWaitForNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unlock, err := Wait(t.Context(), filepath.Join(file, "below"), "lock", nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A probe leaves nothing behind, and says that a disk is full.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	if err := Probe(filepath.Join(dir, "made")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "made")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("a file system of its own cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := Probe(dir); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
}
