package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// A disk that is really full: history continues in memory, with a warning, and
// returns to the disk when there is room.
func TestHistoryOnAFullDisk(t *testing.T) {
	hermetic.Long(t)
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
	h.await("the warnings", func() bool {
		said, code := h.status()
		return code == 1 && strings.Contains(said, "warning: history: figures are not written to disk: ") &&
			strings.Contains(said, "warning: journal: snapshots and events are kept in memory only: ") && strings.Contains(said, "no space left on device")
	})
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
	h.await("no warning", func() bool {
		said, code := h.status()
		return code == 0 && !strings.Contains(said, "warning")
	})
	before = h.samples()
	h.await("more of it", func() bool { return h.samples() > before+5 })
	i.kill()
	h.start("--config", config)
	h.await("what the disk had", func() bool { return h.samples() > 5 })
}

// A ttmond whose disk is full says so before an event is lost, and no longer when there
// is room.
func TestTtmondOnAFullDisk(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := newHost(t)
	h.simulate("p150a")
	state := filepath.Join(h.dir, "ttmond")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system needs rights that are missing here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	h.start()
	if said, code := h.status(); code != 0 || strings.Contains(said, "warning") {
		t.Errorf("with room: exit %d\n%s", code, said)
	}
	ballast := filepath.Join(state, "ballast")
	if err := fill(ballast); err != nil {
		t.Fatal(err)
	}
	h.await("the warning", func() bool {
		said, code := h.status()
		return code == 1 && strings.Contains(said, "ok, 1 warning") && strings.Contains(said, "backlog: events are kept in memory only: ") && strings.Contains(said, "no space left on device")
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	h.await("no warning", func() bool {
		said, code := h.status()
		return code == 0 && !strings.Contains(said, "warning")
	})
}

// status is what ttmon daemon status says of both daemons, and its exit code.
func (h *host) status() (string, int) {
	h.t.Helper()
	cmd := exec.Command(released(h.t, "ttmon"), "daemon", "status", "--daemon", h.api)
	cmd.Env = append(os.Environ(), "TTMON_SERVER_SOCKET="+h.server)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
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
