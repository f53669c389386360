package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is really full: history continues in memory, with a warning, and
// returns to the disk when there is room.
func TestHistoryOnAFullDisk(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("p150a")
	state := filepath.Join(h.dir, "state")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mounting a small file system needs rights that are missing here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	config := filepath.Join(h.dir, "ttmond.toml")
	if err := os.WriteFile(config, []byte("[collect]\ninterval = \"100ms\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := h.start("--config", config)
	h.await("history", func() bool { return h.samples() > 3 })
	ballast := filepath.Join(state, "ballast")
	if err := fill(ballast); err != nil {
		t.Fatal(err)
	}
	h.await("that it is said", func() bool { return strings.Contains(i.log.String(), "history is in memory only") })
	before := h.samples()
	h.await("history in memory", func() bool { return h.samples() > before+5 })
	if e := h.events("kind=ttmond"); len(e) == 0 || !strings.Contains(e[len(e)-1].Text, "no space left on device") {
		t.Errorf("no event says so: %+v", e)
	}
	if status, _ := h.get("/v1/snapshot"); status != 200 {
		t.Errorf("the snapshot has status %d", status)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	h.await("the disk again", func() bool { return strings.Contains(i.log.String(), "history is on disk again") })
	before = h.samples()
	h.await("more of it", func() bool { return h.samples() > before+5 })
	i.kill()
	h.start("--config", config)
	h.await("what the disk had", func() bool { return h.samples() > 5 })
}

// fill writes a file until there is no room, not even for a byte.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		switch _, err := f.Write(make([]byte, size)); {
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case err != nil:
			return err
		}
	}
	return nil
}
