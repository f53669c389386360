package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// TestMount looks at this host through mounts, as containers do.
func TestMount(t *testing.T) {
	hermetic.Need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	bind := func(flags uintptr) hostfs.Root {
		dir := filepath.Join(t.TempDir(), "host")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("/", dir, "", unix.MS_BIND|flags, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		return hostfs.At(dir)
	}
	if m := Read(bind(unix.MS_REC)).Mount; m == nil || !m.Proc || !m.Shm || !m.SamePIDs.V {
		t.Errorf("with all mounts: %+v", m)
	}
	if m := Read(bind(0)).Mount; m == nil || m.Proc || m.Shm || m.SamePIDs.Known() {
		t.Errorf("without them: %+v", m)
	}
	if m := Read(hostfs.At(t.TempDir())).Mount; m != nil {
		t.Errorf("a directory counts as a mount: %+v", m)
	}
}
