package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"

	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// A source whose file does not answer is late, and health says which and since
// when; ttmond continues to serve clients, and is healthy again when the file answers.
func TestLateSource(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := newHost(t)
	h.simulate("n150")
	config := filepath.Join(h.dir, "ttmond.toml")
	if err := os.WriteFile(config, []byte("[collect]\ninterval = \"100ms\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.extraArgs = append(h.extraArgs, "--config", config)
	release := make(chan struct{})
	locks := filepath.Join(h.root, "dev/shm") // UMD's
	if err := os.MkdirAll(locks, 0o755); err != nil {
		t.Fatal(err)
	}
	fusetest.Mount(t, locks, map[string]fs.InodeEmbedder{"TT_UMD_LOCK.CHIP_IN_USE_0_PCIe": &fusetest.File{Release: release}})
	released := false
	unblock := func() {
		if !released {
			released = true
			close(release)
		}
	}
	t.Cleanup(unblock) // before the mount goes
	h.start()
	h.await("health to name the source", func() bool {
		status, tree, err := (&arena{host: h}).health()
		if err != nil || status == http.StatusOK {
			return false
		}
		for _, p := range tree["problems"].([]any) {
			p := p.(map[string]any)
			if p["part"] == "umd" && strings.Contains(p["reason"].(string), "has not answered for") {
				return status == http.StatusServiceUnavailable
			}
		}
		return false
	})
	if said, code := h.status(); code != 2 || !strings.Contains(said, "umd: has not answered for") {
		t.Errorf("ttmon daemon status: exit %d\n%s", code, said)
	}
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000}) // clients notice nothing
	unblock()
	h.await("health", func() bool {
		status, _, err := (&arena{host: h}).health()
		return err == nil && status == http.StatusOK
	})
	if said, code := h.status(); code != 0 || strings.Contains(said, "has not answered") {
		t.Errorf("ttmon daemon status: exit %d\n%s", code, said)
	}
}

// status is what ttmon daemon status says, and its exit code.
func (h *host) status() (string, int) {
	h.t.Helper()
	cmd := exec.Command(released(h.t, "ttmon"), "daemon", "status", "--daemon", h.api)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
